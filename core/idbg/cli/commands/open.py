"""How does a saved session come to the screen?"""

import argparse
from pathlib import Path

from idbg.cli import exits
from idbg.cli.on_screen import become_screen
from idbg.schema.errors import BadInput
from idbg.session.files import is_session

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
    parser.add_argument("session", metavar="SESSION", nargs="?", help="the folder of a session")
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Become the screen. Raises BadInput if this is no session, or there is no screen."""
    output = ["--output", args.output] if args.output else []
    if args.session is None:
        return become_screen(output)
    folder = Path(args.session)
    if not is_session(folder):
        raise BadInput(f"{folder} is not a session", hint="open a folder that a run made, under debug_artifacts/")
    return become_screen([str(folder.absolute()), *output])
