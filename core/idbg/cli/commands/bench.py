"""Measure programs on several backends, and compare the result with an earlier one."""

import argparse
import logging
import os
import tempfile
from pathlib import Path

from idbg.accelerators.registry import rules_for
from idbg.bench import plan
from idbg.bench.history import BenchHistory, default_path
from idbg.bench.runner import RunControl, kernel_times, reason
from idbg.bench.suite import Suite, rows_of
from idbg.cli import exits, output, parsing, sessions, tables
from idbg.cli.progress import Steps
from idbg.cli.signals import raise_on_signal
from idbg.config import places, settings
from idbg.config.arguments import check_device
from idbg.schema import strict_json
from idbg.schema.bench import (
    EAGER,
    RUNS,
    SECONDS,
    BenchBackend,
    BenchCase,
    BenchStep,
    Failed,
    Row,
    SpeedChange,
    Task,
    Timed,
)
from idbg.schema.errors import BadInput, OutputError, output_errors
from idbg.schema.programs import Program, Target
from idbg.views import bench as view
from idbg.views import kernel_times as kernel_view
from idbg.views import regressions

log = logging.getLogger(__name__)
HELP = "measure programs on several backends: compile time, latency, memory, and whether the numbers agree"
ABOUT = """\
Measure programs on several backends: compile time, latency of a call, memory, and whether the numbers agree with
eager. Each row is measured in its own processes and saved at once, so --resume continues an interrupted suite, and
--compare compares a later one with it.
"""
EXAMPLES = (
    ("idbg bench examples/mlp_train.py --backend eager --backend inductor", "one program on two backends"),
    ("idbg bench --all --name before", "every model of the examples folder, with a name for the suite"),
    ("idbg bench --all --compare before", "again, and what changed"),
    ("idbg bench model.py --compare --fail-on slower", "for CI: 1 if it is slower than the last suite"),
    (
        "idbg bench examples/mlp_train.py --kernels --csv rows.csv",
        "also each kernel's time; the rows as CSV",
    ),
)
EXITS = {
    exits.DONE: "every row was measured, and its numbers agree",
    exits.FAILED: "a row was not measured, or its numbers do not agree; with --fail-on slower: a row is slower",
    exits.UNDECIDED: "--fail-on slower cannot be decided: a row is noisy, or its machine was busy or is another",
}
SEE = ("compare", "diff", "analyze")

LAST = "last"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("programs", metavar="FILE.py[:NAME]", nargs="*", help="programs, as for `idbg run`")
    which = parser.add_argument_group("which")
    which.add_argument("--all", action="store_true", help="every model of the examples folder")
    which.add_argument("--model", metavar="NAME", action="append", default=[], help="one of them; repeat for more")
    which.add_argument("--examples", metavar="FOLDER", help="the folder of models: each file with a program()")
    which.add_argument(
        "--backend",
        dest="backends",
        metavar="BACKEND[:MODE]",
        action="append",
        default=[],
        help="eager, inductor, inductor:max-autotune, aot, mock, another package's; repeat for more (eager, inductor)",
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--device", default="", help="cpu, cuda, ...: where to put the programs (where they put themselves)"
    )
    how.add_argument("--dtype", default="", help="float32, bfloat16, float16: weights and inputs are cast (their own)")
    how.add_argument("--batch", metavar="N", type=int, help="inputs are repeated to N, or program(batch=N) (their own)")
    how.add_argument("--runs", metavar="N", type=int, default=RUNS, help=f"samples of each latency ({RUNS})")
    how.add_argument("--threads", metavar="N", type=int, default=0, help="torch's threads on a CPU (torch's default)")
    parsing.add_timeout(how, SECONDS, "for each process")
    how.add_argument("--accelerator", metavar="ACCELERATOR", help="the rules whose violations are counted (mock)")
    how.add_argument("--kernels", action="store_true", help="also the time of each kernel, and what bounds it")
    kept = parser.add_argument_group("history")
    kept.add_argument(
        "--compare",
        metavar="SUITE",
        nargs="?",
        const=LAST,
        help="report what changed since the last suite, or this one",
    )
    kept.add_argument(
        "--fail-on",
        choices=["slower"],
        action="append",
        default=[],
        help="with --compare: exit with 1 if a row is slower beyond the noise, with 3 where that is undecided",
    )
    kept.add_argument("--resume", action="store_true", help="continue the last interrupted suite")
    kept.add_argument("--name", default="", help="a name for this suite, for --compare")
    where = kept.add_mutually_exclusive_group()
    where.add_argument("--database", metavar="FILE", help="the database of rows (in the user's data folder)")
    where.add_argument("--output", metavar="FOLDER", help="the folder of the database: its file is bench.sqlite")
    tables.add_sort(parser)
    parser.add_argument("--csv", metavar="FILE", help="also write the rows to this file")


def run(args: argparse.Namespace, argv: tuple[str, ...]) -> int:
    """Raises BadInput before anything runs, OutputError where the database cannot be used."""
    _check(args)
    folder = sessions.output_folder(args.output) if args.output is not None else None
    history = BenchHistory(places.expanded(args.database) if args.database else default_path(folder))
    try:
        return _run(args, argv, history)
    finally:
        history.close()


def _run(args: argparse.Namespace, argv: tuple[str, ...], history: BenchHistory) -> int:
    for note in history.notes:
        log.warning(note)
    cases = [] if args.resume else _cases(args, argv)
    if not (args.resume or cases or args.compare):
        raise BadInput("no program is named", hint="name files, --model NAME, or --all")
    older = rows_of(history, args.compare) if args.compare and args.compare != LAST else None
    if args.resume:
        suite = Suite.resume(history)
    else:
        suite = Suite.begin(history, cases, args.name) if cases else Suite.latest(history)
    _measure(suite, args.timeout)
    changes: list[SpeedChange] | None = None
    try:
        changes = suite.changes(older) if args.compare else None
    except OutputError as error:  # the measured rows are reported all the same
        log.warning(error.message)
    kernels: list[tuple[BenchCase, Timed | Failed]] = []
    try:
        if args.kernels:
            kernels += _kernels(suite.cases, args.timeout)
    finally:
        _report(suite.rows, changes, kernels, args, history.notes)
    speed = _speed(suite.rows, changes) if args.fail_on else 0
    return speed if view.passed(suite.rows) else exits.FAILED


def _speed(rows: list[Row], changes: list[SpeedChange] | None) -> int:
    """The exit status of --fail-on slower. Writes slower and undecided rows to stderr."""
    if changes is None:
        return exits.UNDECIDED
    judged = regressions.verdict(rows, changes)
    for line in regressions.lines(judged):
        output.line(f"idbg: {line}")
    return exits.FAILED if judged.slower else exits.UNDECIDED if judged.undecided else 0


def _check(args: argparse.Namespace) -> None:
    """Raises BadInput for a number, a device or a column that is not valid."""
    parsing.check_least(args, runs=1, batch=1, threads=0, timeout=0.001)
    check_device(args.device)
    heads = dict.fromkeys(column.head for column in (*view.COLUMNS, *kernel_view.COLUMNS))
    tables.check_sort(args.sort, ("backend", "kernel", *heads))
    if args.fail_on and not args.compare:
        raise BadInput("--fail-on slower has nothing to compare with", hint="add --compare, or --compare SUITE")


def _cases(args: argparse.Namespace, argv: tuple[str, ...]) -> list[BenchCase]:
    cwd = os.getcwd()
    folder = Path(args.examples) if args.examples else None
    programs = plan.programs(args.programs, args.model, folder, everything=args.all, argv=argv, cwd=cwd)
    chosen = settings.load(os.environ)
    rules, _ = rules_for(Target(accelerator=args.accelerator or chosen.accelerator or "mock"))
    like = BenchCase(
        program=Program(""),
        backend=BenchBackend(""),
        device=args.device,
        dtype=args.dtype,
        batch=args.batch,
        runs=args.runs,
        threads=args.threads,
        rules=rules,
    )
    return plan.cases(programs, plan.backends(args.backends), like)


def _measure(suite: Suite, seconds: float) -> None:
    """Measure the missing rows of the suite, each process within so many seconds. An interrupt logs how many rows are
    saved, and is raised.
    """
    measured = 0
    steps, task_name = Steps(output.bar(), len(suite.cases)), ""

    def begin_task(case: BenchCase, task: Task) -> None:
        nonlocal task_name
        task_name = f"{_name(case)}: {task}"
        steps.show(task_name)

    def begin_step(step: BenchStep) -> None:
        if output.bar().on_terminal:
            steps.show(f"{task_name}, {step.words}")

    with raise_on_signal():
        try:
            for _ in suite.measure(_save_elsewhere, RunControl(begin_task, begin_step, seconds=seconds)):
                measured += 1
                steps.next()
        except BaseException:  # a signal too: the exception is raised again
            if measured < len(suite.cases):
                log.warning("%d of %d rows are kept; --resume continues", measured, len(suite.cases))
            raise


def _save_elsewhere(error: OutputError, row: Row | None) -> None:
    """Write a row that the database refuses to a file: it took minutes to measure."""
    kept = ""
    if row is not None:
        with tempfile.NamedTemporaryFile("w", prefix="idbg-bench-", suffix=".json", delete=False) as file:
            file.write(strict_json.formatted(view.as_json([row])).decode())
        kept = f"; the row is in {file.name}"
    log.warning("%s%s", error.message, kept)


def _kernels_as_json(case: BenchCase, result: Timed | Failed) -> dict[str, object]:
    timed = kernel_view.as_json(result.times) if isinstance(result, Timed) else {"reason": reason(result)}
    return {"program": case.program.label, "backend": str(case.backend), **timed}


def _name(case: BenchCase) -> str:
    return f"{case.program.label} {case.backend}"


def _kernels(cases: list[BenchCase], seconds: float) -> list[tuple[BenchCase, Timed | Failed]]:
    """The kernel times of each case; eager has none."""
    timed = []
    compiled = [case for case in cases if case.backend.name != EAGER]
    steps = Steps(output.bar(), len(compiled))
    with raise_on_signal():
        for case in compiled:
            steps.show(f"{_name(case)}: kernels")
            timed.append((case, kernel_times(case, RunControl(seconds=seconds))))
            steps.next()
    return timed


def _report(
    rows: list[Row],
    changes: list[SpeedChange] | None,
    kernels: list[tuple[BenchCase, Timed | Failed]],
    args: argparse.Namespace,
    notes: list[str],
) -> None:
    def text() -> str:
        parts = [
            tables.text(kernel_view.view(result.times, _name(case)), args.sort, check=False)
            if isinstance(result, Timed)
            else f"{_name(case)}: no kernel was timed: {reason(result)}"
            for case, result in kernels
        ]
        return "\n\n".join([*parts, tables.text(view.view(rows, changes), args.sort, check=False)])

    output.report(
        lambda: view.as_json(rows, changes or (), notes, [_kernels_as_json(*timed) for timed in kernels]),
        text,
    )
    if args.csv:
        with output_errors(f"cannot write {args.csv}", "name another file"):
            Path(args.csv).write_text(view.as_csv(rows))
