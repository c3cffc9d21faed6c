"""What is in this session?"""

import argparse

from idbg.cli import exits, output, tables
from idbg.cli.sessions import SESSION, add_output, find, numbered

HELP = "show what is in a session: its runs and what came of each, repros, measurements"
ABOUT = """\
Show what is in a session: who made it, its runs and what came of each, its repros and measurements, and what is missing
of it where it was damaged or cut off. Nothing is run, and no torch is needed.

With --run it is the report of one run, as idbg run printed it.
"""
EXAMPLES = (
    ("idbg show last", "the newest session"),
    ("idbg show resnet-20260301-101500 --run 2", "what idbg run would have printed of its second run"),
    ("idbg show last --json", "as JSON"),
)
EXITS = {exits.DONE: "it was told, whatever came of its runs"}
SEE = ("list", "open", "report", "analyze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which session, and which run of it."""
    parser.add_argument("session", metavar="SESSION", help=SESSION)
    parser.add_argument("--run", metavar="N", type=int, help="the report of this run of it, from 1")
    tables.add_sort(parser)
    add_output(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Read it and tell; 0. Raises OutputError where it is no session, BadInput where it has no such run."""
    from idbg.session.summaries import read_whole
    from idbg.views.session_overview import overview, view

    summary, history = read_whole(find(args.session, args.output).absolute())
    if args.run is not None:
        known = numbered(history, args.run, summary.name)
        if args.json:
            from idbg.reports import json

            output.say_json(json.run_report(known))
        else:
            from idbg.format.plain_text import plain
            from idbg.reports import text

            output.say(plain("\n".join(text.run_report(known))))
        return exits.DONE
    told = overview(summary, history)
    if args.json:
        output.say_json(told)
        return exits.DONE
    tables.say(view(told), args.sort)
    output.note(
        f"idbg open {args.session} shows it on the screen; idbg report {args.session} -o report.html writes a page"
    )
    return exits.DONE
