"""Which sessions are there, and what came of each?"""

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import get_args

import msgspec

from idbg.cli import exits, moments, output, tables
from idbg.cli.sessions import add_output, output_folder
from idbg.schema.errors import BadInput
from idbg.schema.programs import Verdict
from idbg.schema.summaries import SessionSummary
from idbg.session.index import sessions
from idbg.views import sessions as sessions_view

HELP = "list the sessions that are kept, the newest first, and what came of each"
ABOUT = """\
List the sessions of the output folder, the newest first: the program, what its last run was for, and what came of it.
The first column names a session to every other command: idbg show NAME.

A session that is written to now is marked live; one that cannot be read to its end says so.
"""
EXAMPLES = (
    ("idbg list", "those of the output folder"),
    ("idbg list --program resnet --since 3d", "what was done with one program in the last three days"),
    ("idbg list --sort size", "the largest first"),
    ("idbg list --verdict wrong --verdict failed --json", "what went wrong, as JSON"),
)
EXITS = {exits.DONE: "it was told, also where there is no session"}
SEE = ("show", "open", "clean", "report")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of a folder that were asked for, newest first; `of` is how many lie there."""

    schema: str = "idbg.list/1"
    output: str
    of: int
    sessions: list[SessionSummary]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where they lie, and which of them."""
    which = parser.add_argument_group("which of them")
    which.add_argument("--program", metavar="TEXT", help="whose program's name has this in it, or fits it (*net*.py)")
    which.add_argument(
        "--since", metavar="WHEN", help="begun then or later: 2026-11-01, today, or so long ago: 3d, 12h"
    )
    which.add_argument("--until", metavar="WHEN", help="begun then or before; a day is meant to its end")
    which.add_argument(
        "--verdict", action="append", choices=get_args(Verdict), default=[], help="whose last run came to this; repeat"
    )
    which.add_argument("--limit", metavar="N", type=int, help="the newest N of them")
    tables.add_sort(which)
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Tell what there is; 0, also where there is nothing. Raises BadInput for a time that is none."""
    if args.limit is not None and args.limit < 0:
        raise BadInput(f"--limit is {args.limit}", hint="give a number from 0 up")
    folder = output_folder(args.output)
    there = sessions(folder)
    found = list(_asked(there, args))[: args.limit]
    if args.json:
        output.say_json(Listing(output=str(folder), of=len(there), sessions=found))
    elif found:
        tables.say(sessions_view.view(found), args.sort)
    if not found:
        others = f": none of {len(there):,} is as asked" if there else "; idbg run FILE.py makes one"
        output.note(f"no session in {folder}{others}")
    return exits.DONE


def _asked(found: list[SessionSummary], args: argparse.Namespace) -> Iterator[SessionSummary]:
    begins = moments.since(args.since) if args.since else None
    ends = moments.until(args.until) if args.until else None
    pattern = (args.program or "").casefold()
    if pattern and not set("*?[") & set(pattern):
        pattern = f"*{pattern}*"
    for each in found:
        if begins is not None and each.started < begins:
            continue
        if ends is not None and each.started > ends:
            continue
        if args.verdict and each.verdict not in args.verdict:
            continue
        if pattern and not fnmatchcase(each.program.casefold(), pattern):
            continue
        yield each
