"""Open a saved session on the screen."""

import argparse

from idbg.cli import exits, sessions
from idbg.cli.screen import become_screen

HELP = "open a saved session on the screen; without one, choose among the last sessions and the examples"
EXAMPLES = (
    ("idbg open", "choose among the last sessions and the examples"),
    ("idbg open last", "the newest; it needs no torch"),
    ("idbg open debug_artifacts/resnet-20260301-101500", "this one"),
)
EXITS = {exits.DONE: "you left the screen; without a terminal: the choices were listed"}
NO_JSON = "it is a screen: use idbg show SESSION --json"
SEE = ("list", "show", "tour", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help=sessions.SESSION)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    output = [f"--output={args.output}"] if args.output else []
    session = [] if args.session is None else [str(sessions.find(args.session, args.output).absolute())]
    return become_screen([*session, *output])
