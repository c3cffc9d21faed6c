"""Open a tour of the screen, on a small model that comes with idbg."""

import argparse

from idbg.cli import exits
from idbg.cli.screen import become_screen
from idbg.cli.sessions import add_output

HELP = "a guided tour of the screen in five minutes, on a small model that comes with idbg"
ABOUT = """\
Open the screen on a small model that comes with idbg and compiles in seconds. A strip above the last line says what to
look at and which key to press next. Its own keys go forward and back, and close it.
"""
EXAMPLES = (("idbg tour", "the panes and the keys, step by step"),)
EXITS = {exits.DONE: "you left the screen"}
NO_JSON = "it is a screen: use idbg show SESSION --json"
SEE = ("open", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    return become_screen(["--tour", *([f"--output={args.output}"] if args.output else [])])
