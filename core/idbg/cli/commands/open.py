"""How does a saved session come to the screen?"""

import argparse

from idbg.cli import exits
from idbg.cli.on_screen import become_screen
from idbg.cli.sessions import SESSION, add_output, find

HELP = "open a saved session on the screen; without one, choose among the last sessions and the examples"
EXAMPLES = (
    ("idbg open", "choose among the last sessions and the examples"),
    ("idbg open debug_artifacts/resnet-20260301-101500", "what happened in this one; it needs no torch"),
)
EXITS = {exits.DONE: "you left the screen; without a terminal: what can be opened is told"}
NO_JSON = "it is the screen: idbg show SESSION --json tells of a session"
SEE = ("list", "show", "tour", "run")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which one."""
    parser.add_argument("session", metavar="SESSION", nargs="?", help=SESSION)
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Become the screen. Raises BadInput if this is no session, or there is no screen."""
    output = ["--output", args.output] if args.output else []
    if args.session is None:
        return become_screen(output)
    return become_screen([str(find(args.session, args.output).absolute()), *output])
