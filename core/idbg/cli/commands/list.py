"""List the saved sessions and their results."""

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import get_args

from idbg.cli import exits, moments, output, parsing, tables
from idbg.cli.sessions import add_output, output_folder
from idbg.schema.programs import Verdict
from idbg.schema.summaries import SessionSummary
from idbg.session.index import sessions
from idbg.views import sessions as sessions_view

HELP = "list the saved sessions and their results, the newest first"
ABOUT = """\
List the sessions of the output folder, the newest first: the program, the target of its last run, and the result. The
first column is the session's name for every other command: idbg show NAME.

A session that is being written is marked live; one that cannot be read to its end says so.
"""
EXAMPLES = (
    ("idbg list", "the sessions of the output folder"),
    ("idbg list --program resnet --since 3d", "the sessions of one program of the last three days"),
    ("idbg list --sort size", "the largest first"),
    ("idbg list --verdict wrong --verdict failed --json", "what went wrong, as JSON"),
)
EXITS = {exits.DONE: "the list was printed, also where there is no session"}
SEE = ("show", "open", "clean", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument_group("filters")
    which.add_argument("--program", metavar="TEXT", help="whose program's name contains this, or matches it (*net*.py)")
    which.add_argument("--since", metavar="WHEN", help="begun then or later: 2026-11-01, today, or an age: 3d, 12h")
    which.add_argument("--until", metavar="WHEN", help="begun then or before; a day counts to its end")
    which.add_argument(
        "--verdict", action="append", choices=get_args(Verdict), default=[], help="whose last run has this; repeat"
    )
    which.add_argument("--limit", metavar="N", type=int, help="only the newest N")
    tables.add_sort(which)
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    parsing.check_least(args, limit=0)
    folder = output_folder(args.output)
    every = sessions(folder)
    found = list(_filtered(every, args))[: args.limit]
    if found or args.json:
        output.report(
            lambda: {"schema": "idbg.list/1", "output": str(folder), "of": len(every), "sessions": found},
            lambda: tables.text(sessions_view.view(found), args.sort),
        )
    if not found:
        others = f": none of {len(every):,} matches" if every else "; idbg run FILE.py makes one"
        output.note(f"no session in {folder}{others}")
    return exits.DONE


def _filtered(found: list[SessionSummary], args: argparse.Namespace) -> Iterator[SessionSummary]:
    begins = moments.since(args.since) if args.since else None
    ends = moments.until(args.until) if args.until else None
    pattern = (args.program or "").casefold()
    if pattern and not set("*?[") & set(pattern):
        pattern = f"*{pattern}*"
    for each in found:
        if (
            (begins is None or each.started >= begins)
            and (ends is None or each.started <= ends)
            and (not args.verdict or each.verdict in args.verdict)
            and (not pattern or fnmatchcase(each.program.casefold(), pattern))
        ):
            yield each
