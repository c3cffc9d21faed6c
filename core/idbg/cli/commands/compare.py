"""What does a switch change? Two runs of a program, or of two saved sessions, held against each other."""

import argparse
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from idbg.cli import exits, output, sessions
from idbg.cli.commands.run import is_unusable
from idbg.config import options, places
from idbg.config.arguments import add_arguments as add_program_arguments
from idbg.config.arguments import settle
from idbg.config.switched import switched
from idbg.render.text import lines
from idbg.schema.bench import BenchCase, Latency
from idbg.schema.errors import BadInput
from idbg.schema.programs import Target
from idbg.schema.runs import Run
from idbg.views import compared

if TYPE_CHECKING:
    from idbg.session.session import Session

log = logging.getLogger(__name__)
HELP = "run a program with and without a switch, or take two sessions, and tell what changed"
ABOUT = """\
Run a program with and without a switch, or take two saved sessions, and tell what changed: breaks, recompiles, fusion,
kernels and their code, time and memory.

One session alone: its last two runs. `idbg switches` lists what can be given to --with.
"""
EXAMPLES = (
    (
        "idbg compare examples/mlp_train.py --with max_autotune=true --latency",
        "what a switch changes, and what it buys",
    ),
    (
        "idbg compare debug_artifacts/ONE debug_artifacts/OTHER --source",
        "two sessions, with the code of kernels that changed",
    ),
)
EXITS = {
    exits.DONE: "it was told",
    exits.FAILED: "the second run failed, or nothing was compiled in it",
}
SEE = (
    "switches",
    "analyze",
    "bench",
)

Both = tuple[Latency, Latency]
_MOST = 20  # rows of a kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared, and whether that is told as text or as JSON."""
    add_program_arguments(parser, instead=sessions.SESSION)
    parser.add_argument(
        "other", metavar="SESSION", nargs="?", default="", help="the second session (the first's own last two runs)"
    )
    parser.add_argument(
        "--with",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="switches",
        help="what the second run has otherwise: max_autotune=true, mode=reduce-overhead, dynamic=true, "
        "dynamo.recompile_limit=2, backend=aot, ...; repeat for more",
    )
    parser.add_argument(
        "--latency",
        action="store_true",
        help="also how long a call takes: both are measured, in processes of their own",
    )
    parser.add_argument("--source", action="store_true", help="also the code of kernels that changed, side by side")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Run or read both, and tell; the exit status is as `EXITS` has it."""
    saved = None if args.module else sessions.named(args.program, args.output)
    if saved is not None:
        if args.switches:
            raise BadInput("--with runs a program: a session was run already", hint="name its file instead")
        if args.latency:
            raise BadInput("--latency runs a program: a session was run already", hint="name its file, and --with")
        before, after, latency = (
            *_of_sessions(saved, sessions.find(args.other, args.output) if args.other else None),
            None,
        )
    else:
        if args.other:
            raise BadInput(f"{args.program} is no session", hint="name two sessions' folders, or one file and --with")
        before, after, latency = _of_program(args, argv)
    for one in (before, after):
        if is_unusable(one) and one.failure is not None:
            raise BadInput(one.failure.message, hint=one.failure.hint)
    _report(before, after, latency, args)
    return 0 if after.verdict in ("clean", "violations") else exits.FAILED


def _of_sessions(one: Path, other: Path | None) -> tuple[Run, Run]:
    """The last run of each; of one alone its last two. Raises BadInput where there are not two."""
    runs = _runs(one)
    if other is not None:
        return runs[-1], _runs(other)[-1]
    if len(runs) < 2:
        raise BadInput(f"the session {one} has one run", hint="name a second session, or a file and --with NAME=VALUE")
    return runs[-2], runs[-1]


def _runs(folder: Path) -> list[Run]:
    with sessions.opened(folder) as saved:
        runs = [saved.history.runs[number] for number in sorted(saved.history.runs)]
    if not runs:
        raise BadInput(f"the session {folder} has no run: there is nothing to compare", hint="run it: idbg run")
    return runs


def _of_program(args: argparse.Namespace, argv: tuple[str, ...]) -> tuple[Run, Run, Both | None]:
    """As the target's flags have it, and with the switches: one after the other in one session; then how long a call
    of each takes, where that is asked and could be measured.
    """
    from idbg.cli.one_run import a_session

    if not args.switches:
        raise BadInput(
            "what is the second run to have otherwise?", hint="for example --with max_autotune=true (idbg switches)"
        )
    asked = settle(args, argv, strict=False)
    target = _with(asked.target, args.switches)
    with a_session(asked.program, asked.target, places.expanded(asked.settings.output)) as session:
        first = session.run()
        session.wait()
        if is_unusable(session.history.runs[first]):
            return session.history.runs[first], session.history.runs[first], None
        second = session.run(target)
        session.wait()
        before, after = session.history.runs[first], session.history.runs[second]
        latency = _latency(session, before, after) if args.latency else None
    output.session(session.folder)
    return before, after, latency


def _latency(session: "Session", before: Run, after: Run) -> Both | None:
    """How long a call of both takes; says on stderr why it is not known."""
    session.bench([BenchCase.of(session.program, run.target) for run in (before, after)])
    session.wait()
    one, other = session.history.rows[-2:]
    for row in (one, other):
        if row.latency_ms is None:
            log.warning("no latency of %s: %s", row.backend, row.reason)
    if one.latency_ms is None or other.latency_ms is None:
        return None
    return one.latency_ms, other.latency_ms


def _with(target: Target, texts: list[str]) -> Target:
    """The target with these switches. Raises BadInput."""
    for text in texts:
        name, value = options.parse(text, "--with")
        target = switched(target, name, value)
    return target


def _report(before: Run, after: Run, latency: Both | None, args: argparse.Namespace) -> None:
    if args.json:
        from idbg.reports import json

        found = compared.as_json(before, after, latency)
        output.say_json(json.encode({"schema": "idbg.compare/1", **found}))
        return
    width = max(30, (shutil.get_terminal_size((160, 24)).columns - 6) // 2) if args.source else 0
    output.say("\n".join(lines(compared.view(before, after, latency), _MOST, sides=width)))
