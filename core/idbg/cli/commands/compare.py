"""Compare two runs: of a program with and without a switch, or of saved sessions."""

import argparse
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from idbg.cli import exits, output, sessions, tables
from idbg.cli.commands.run import is_unusable
from idbg.config import options
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.config.switches import with_value
from idbg.schema.bench import BenchCase, Latency
from idbg.schema.errors import BadInput
from idbg.schema.programs import SUCCESSFUL
from idbg.schema.runs import Run
from idbg.views import compared

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "compare a program with and without a switch, or two sessions"
ABOUT = """\
Run a program with and without a switch, or read two saved sessions, and report what changed: breaks, recompiles,
fusion, kernels and their code, time and memory.

With one session: its last two runs. `idbg switches` lists the names for --with.
"""
EXAMPLES = (
    (
        "idbg compare examples/mlp_train.py --with max_autotune=true --latency",
        "what a switch changes, and how much faster it is",
    ),
    (
        "idbg compare debug_artifacts/ONE debug_artifacts/OTHER --source",
        "two sessions, with the code of kernels that changed",
    ),
)
EXITS = {
    exits.DONE: "the report was written",
    exits.FAILED: "the second run failed, or nothing was compiled in it",
}
SEE = ("switches", "analyze", "bench")

Latencies = tuple[Latency, Latency]
_MAX_ROWS = 20  # of a kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program_arguments(parser, instead=sessions.SESSION)
    parser.add_argument(
        "other",
        metavar="SESSION",
        nargs="?",
        default="",
        help="the second session (default: the last two runs of the first)",
    )
    parser.add_argument(
        "--with",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="switches",
        help="what is different in the second run: max_autotune=true, mode=reduce-overhead, dynamic=true, "
        "dynamo.recompile_limit=2, backend=aot, ...; repeat for more",
    )
    parser.add_argument(
        "--latency", action="store_true", help="also measure the time of a call, each in its own process"
    )
    parser.add_argument("--source", action="store_true", help="also show the code of changed kernels, side by side")
    tables.add_sort(parser)


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    tables.check_sort(args.sort, compared.COLUMNS)
    session = sessions.saved(args)
    latencies = None
    if session is not None:
        for flag, is_there in (("--with", args.switches), ("--latency", args.latency)):
            if is_there:
                raise BadInput(f"{flag} needs a program to run, not a session", hint="name a file, and --with")
        before, after = _of_sessions(session, sessions.find(args.other, args.output) if args.other else None)
    elif args.other:
        raise BadInput(f"{args.program} is not a session", hint="name two sessions, or one file and --with")
    else:
        before, after, latencies = _of_program(args, argv)
    for one in (before, after):
        if is_unusable(one) and one.failure is not None:
            raise BadInput(one.failure.message, hint=one.failure.hint)
    _report(before, after, latencies, args)
    return exits.DONE if after.verdict in SUCCESSFUL else exits.FAILED


def _of_sessions(one: Path, other: Path | None) -> tuple[Run, Run]:
    """The last run of each session, or the last two runs of one. Raises BadInput where there are not two."""
    runs = _runs(one)
    if other is not None:
        return runs[-1], _runs(other)[-1]
    if len(runs) < 2:
        raise BadInput(f"the session {one} has one run", hint="name a second session, or a file and --with NAME=VALUE")
    return runs[-2], runs[-1]


def _runs(folder: Path) -> list[Run]:
    with sessions.opened(folder) as session:
        sessions.last_run(session.history, folder)
        return [session.history.runs[number] for number in sorted(session.history.runs)]


def _of_program(args: argparse.Namespace, argv: tuple[str, ...]) -> tuple[Run, Run, Latencies | None]:
    """Two runs in one session: for the target, and with the switches. With --latency also the latency of both."""
    from idbg.cli.one_run import open_session, run_in

    if not args.switches:
        raise BadInput(
            "the second run has no switch", hint="for example --with max_autotune=true (idbg switches lists them)"
        )
    request = settle(args, argv)
    target = request.target
    for text in args.switches:
        target = with_value(target, *options.parse(text, "--with"))
    with open_session(request) as session:
        before = run_in(session)
        if is_unusable(before):
            return before, before, None
        second = session.run(target)
        session.wait()
        after = session.history.runs[second]
        latencies = _latencies(session, before, after) if args.latency else None
    output.session(session.folder)
    return before, after, latencies


def _latencies(session: "Session", before: Run, after: Run) -> Latencies | None:
    """The latency of a call of both. Logs a warning where it could not be measured."""
    session.bench([BenchCase.of(session.program, run.target) for run in (before, after)])
    session.wait()
    one, other = session.history.rows[-2:]
    for row in (one, other):
        if row.latency_ms is None:
            log.warning("no latency of %s: %s", row.backend, row.reason)
    if one.latency_ms is None or other.latency_ms is None:
        return None
    return one.latency_ms, other.latency_ms


def _report(before: Run, after: Run, latencies: Latencies | None, args: argparse.Namespace) -> None:
    sides = max(30, (shutil.get_terminal_size((160, 24)).columns - 6) // 2) if args.source else 0
    output.report(
        lambda: {"schema": "idbg.compare/1", **compared.as_json(before, after, latencies)},
        lambda: tables.text(compared.view(before, after, latencies), args.sort, _MAX_ROWS, check=False, sides=sides),
    )
