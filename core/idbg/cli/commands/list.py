"""Which sessions are there, and what came of each?"""

import argparse
import os

import msgspec

from idbg.cli import exits, output
from idbg.config import places, settings
from idbg.schema.summaries import SessionSummary
from idbg.session.index import sessions

HELP = "list the sessions that are kept, the newest first, and what came of each"
EXAMPLES = (
    ("idbg list", "those of the output folder"),
    ("idbg list --output /data/sessions --json", "those of another folder, as JSON"),
)
EXITS = {
    exits.DONE: "it was told, also where there is no session",
}
SEE = ("show", "clean", "report")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of a folder, newest first."""

    schema: str = "idbg.list/1"
    output: str
    sessions: list[SessionSummary]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where they lie."""
    parser.add_argument("--output", metavar="FOLDER", help="where sessions are kept (debug_artifacts)")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Tell what there is; 0, also where there is nothing."""
    folder = places.expanded(args.output or settings.load(os.environ).output).absolute()
    found = sessions(folder)
    if args.json:
        output.say_json(Listing(output=str(folder), sessions=found))
    else:
        for each in found:
            output.say(f"{each.name} {each.program} {each.said}")
    return exits.DONE
