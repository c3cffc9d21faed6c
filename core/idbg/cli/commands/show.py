"""Show the runs, repros and measurements of a session."""

import argparse

from idbg.cli import exits, output, sessions, tables

HELP = "show what is in a session: its runs and their results, repros, measurements"
ABOUT = """\
Show what is in a session: who made it, its runs and their results, its repros and measurements, and what is missing
where it was damaged or cut off. Nothing is run, and no torch is needed.

With --run it is the report of one run, as idbg run printed it.
"""
EXAMPLES = (
    ("idbg show last", "the newest session"),
    ("idbg show resnet-20260301-101500 --run 2", "the report of its second run"),
    ("idbg show last --json", "as JSON"),
)
EXITS = {exits.DONE: "the session was read, whatever the result of its runs"}
SEE = ("list", "open", "report", "analyze")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sessions.add_session(parser)
    parser.add_argument("--run", metavar="N", type=int, help="the report of this run, from 1")
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    from idbg.session.summaries import read_whole
    from idbg.views.session_overview import overview, view

    folder = sessions.find(args.session, args.output).absolute()
    summary, history = read_whole(folder)
    if args.run is not None:
        from idbg.cli.one_run import print_run

        print_run(sessions.numbered(history, args.run, summary.name))
        return exits.DONE
    found = overview(summary, history, sessions.processes_of(folder, history))
    output.report(lambda: found, lambda: tables.text(view(found), args.sort))
    if not args.json:
        output.note(
            f"idbg open {args.session} shows it on the screen; idbg report {args.session} -o report.html writes a page"
        )
    return exits.DONE
