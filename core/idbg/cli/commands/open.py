"""How does a saved session come to the screen?"""

import argparse

from idbg.cli import exits, sessions
from idbg.cli.on_screen import become_screen

HELP = "open a saved session on the screen; without one, choose among the last sessions and the examples"
EXAMPLES = (
    ("idbg open", "choose among the last sessions and the examples"),
    ("idbg open last", "the newest; it needs no torch"),
    ("idbg open debug_artifacts/resnet-20260301-101500", "this one"),
)
EXITS = {exits.DONE: "you left the screen; without a terminal: what can be opened is told"}
NO_JSON = "it is the screen: idbg show SESSION --json tells of a session"
SEE = ("list", "show", "tour", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which one."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help=sessions.SESSION)
    sessions.add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Become the screen. Raises OutputError if this is no session, BadInput if there is no screen."""
    output = [f"--output={args.output}"] if args.output else []
    if args.session is None:
        return become_screen(output)
    return become_screen([str(sessions.find(args.session, args.output).absolute()), *output])
