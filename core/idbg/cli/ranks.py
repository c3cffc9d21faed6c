"""Run a job of several ranks, and report the ranks of a session."""

import argparse
import os
from pathlib import Path

from idbg.cli import exits, output, sessions
from idbg.schema.diff import Comparison
from idbg.schema.ranks import RankComparison

MOST_ROWS = 50  # of one list: the JSON report has all
SCHEMA = "idbg.ranks/1"


def run_job(args: argparse.Namespace, argv: tuple[str, ...], comparison: Comparison | None = None) -> int:
    """Run the job of a command line to its end, or until a signal ends it, and compare the numbers of each rank, if
    requested. Raises BadInput for what a job cannot have, OutputError.
    """
    from idbg.cli.signals import Stopped, raise_on_signal
    from idbg.config import launching, places, settings
    from idbg.session import launch

    command, program = launching.job(args, argv, os.getcwd())
    chosen = settings.load(os.environ, {"output": args.output} if args.output else {})
    folder = places.expanded(args.session).absolute() if args.session else None
    store = launch.new_session(program, places.expanded(chosen.output), folder, chosen.keeping.session_size)
    stdout = 2 if args.json else 1
    with raise_on_signal(), launch.Job(command, program, store, stdout=stdout, comparison=comparison) as job:
        try:
            status = job.wait()
        except Stopped as stopped:  # the usual end of a server
            status = stopped.status
    found = report(job.folder, SCHEMA)
    output.session(job.folder)
    if status or has_failed(found):
        return status or exits.FAILED
    return _status_of_numbers(found) if comparison is not None else exits.DONE


def _status_of_numbers(found: RankComparison) -> int:
    """Whether the numbers of each rank agree with eager, where none is wrong."""
    numbers = {each.numbers for each in found.digests}
    if numbers == {"agree"}:
        return exits.DONE
    if "not compared" in numbers:
        output.note("not all ranks have numbers that were compared: they compiled nothing that ran")
    return exits.UNDECIDED if "not comparable" in numbers else exits.FAILED


def report(folder: Path, schema: str) -> RankComparison:
    """Print the comparison of the session's ranks, and its other processes: the text, or the JSON with --json."""
    from idbg.render.text import text
    from idbg.schema.runs import fold
    from idbg.session.ranks import of_session
    from idbg.session.reading import load
    from idbg.views import processes, ranks

    history = fold(load(folder))
    with sessions.reading_ranks() as show:
        found = of_session(folder, history.processes.values(), show)
    others = [each for each in sessions.processes_of(folder, history) if each.rank is None]

    def texts() -> str:
        sections = [ranks.view(found)] if found.digests or not others else []
        sections += [processes.view(others)] if others else []
        return "\n\n".join(text(section, MOST_ROWS) for section in sections)

    output.report(lambda: {"schema": schema, "ranks": ranks.as_json(found), "processes": others}, texts)
    return found


def has_failed(found: RankComparison) -> bool:
    """Whether a rank failed, hangs, began another collective than the others, or has wrong numbers."""
    from idbg.views import ranks

    return any(ranks.level(each) == "error" for each in found.differences)
