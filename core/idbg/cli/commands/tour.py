"""Where is everything? A tour of the screen, on a small model that comes with idbg."""

import argparse

from idbg.cli.on_screen import become_screen

HELP = "a guided tour of the screen in five minutes, on a small model that comes with idbg"
EXAMPLES = (("idbg tour", "what each pane tells, and the keys: a strip says which comes next"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where its session is kept."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Become the screen."""
    return become_screen(["--tour", *(["--output", args.output] if args.output else [])])
