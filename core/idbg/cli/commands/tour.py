"""Where is everything? A tour of the screen, on a small model that comes with idbg."""

import argparse

from idbg.cli import exits
from idbg.cli.on_screen import become_screen
from idbg.cli.sessions import add_output

HELP = "a guided tour of the screen in five minutes, on a small model that comes with idbg"
ABOUT = """\
Open the screen on a small model that comes with idbg and compiles in seconds. A strip above the last line says what to
look at and which key comes next, and goes on when that was done. Its own keys go on, back, and take it away.
"""
EXAMPLES = (("idbg tour", "what each pane tells, and the keys: a strip says which comes next"),)
EXITS = {exits.DONE: "you left the screen"}
NO_JSON = "it is the screen: idbg show SESSION --json tells of a session"
SEE = ("open", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where its session is kept."""
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Become the screen."""
    return become_screen(["--tour", *([f"--output={args.output}"] if args.output else [])])
