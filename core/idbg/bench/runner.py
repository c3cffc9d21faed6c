"""Measure benchmark rows: each task of a row in a process of its own, one after another."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import asdict, replace

from idbg.format.amounts import share
from idbg.schema.bench import (
    EAGER,
    SECONDS,
    BenchCase,
    BenchStep,
    Checked,
    Failed,
    Machine,
    Measured,
    Row,
    Task,
    TaskResult,
    Timed,
    file_of,
)
from idbg.schema.programs import Failure
from idbg.schema.strict_json import like
from idbg.worker.child import Child
from idbg.worker.one_answer import Answered, answered, caches_in

NOISY = 0.15  # the middle half of the samples, as a part of the median
STEPS = 3  # of the timer, that a sample must take to be believed
BUSY = 0.1  # of the processors, that others used meanwhile

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.bench")
_DECODER: msgspec.json.Decoder[TaskResult | BenchStep] = msgspec.json.Decoder(TaskResult | BenchStep)


def _ignore(*_: object) -> None: ...


@dataclass(frozen=True)
class RunControl:
    """Reports the tasks and the steps of a measurement as they begin, and limits it: each process to `seconds`, all of
    it until it is `stopped`.
    """

    on_task: Callable[[BenchCase, Task], None] = _ignore
    on_step: Callable[[BenchStep], None] = _ignore
    stopped: Callable[[], bool] = lambda: False
    seconds: float = SECONDS


DEFAULT_CONTROL = RunControl()


def rows(cases: list[BenchCase], control: RunControl = DEFAULT_CONTROL, *, known: Iterable[Row] = ()) -> Iterator[Row]:
    """Each case's row as soon as it is measured, until it is stopped; an unfinished row is dropped.

    A row's speed-up is over the eager row of its program, of these or of the `known` ones.
    """
    eager = {_same(row): row for row in known if row.backend == EAGER}
    for case in cases:
        row = _row(case, control)
        if control.stopped():
            return
        if case.backend.name == EAGER:
            eager[_same(row)] = row
        yield _with_speedup(row, eager.get(_same(row)))


def _same(row: Row) -> tuple[object, ...]:
    return row.file, row.program_hash, row.device, row.dtype, row.batch


def kernel_times(case: BenchCase, control: RunControl = DEFAULT_CONTROL) -> Timed | Failed:
    """Measure the time of each of the program's kernels, in one process with an empty cache."""
    with TemporaryDirectory(prefix="idbg-bench-", ignore_cleanup_errors=True) as cache:
        answer = measured(case, "kernels", Path(cache), control)
    assert isinstance(answer, Timed | Failed)
    return answer


def measured(case: BenchCase, task: Task, cache: Path, control: RunControl = DEFAULT_CONTROL) -> TaskResult:
    """The result of one task, from a new process with nothing but `cache` cached."""

    def result_of(line: bytes) -> TaskResult | None:
        message = _DECODER.decode(line)
        if not isinstance(message, BenchStep):
            return message
        control.on_step(message)
        return None

    child = Child((*COMMAND, task, msgspec.json.encode(case).decode()), caches_in(cache), doomed=cache)
    done: Answered[TaskResult] = answered(child, control.seconds, control.stopped, result_of)
    if control.stopped():
        return Failed(Failure(kind="cancelled", message="cancelled"))
    if not done.in_time:
        return _failed(
            f"{task}: it took longer than {control.seconds:g} s, and was stopped", "give it more (--timeout)"
        )
    if done.answer is None:
        return _failed(f"{task}: {done.words}", "run it alone: idbg run")
    return done.answer


def _failed(message: str, hint: str) -> Failed:
    return Failed(Failure(kind="worker", message=message, hint=hint))


def _row(case: BenchCase, control: RunControl) -> Row:
    results: dict[Task, TaskResult] = {}
    tasks: tuple[Task, ...] = ("warm",) if case.backend.name == EAGER else ("cold", "warm", "check")
    with TemporaryDirectory(prefix="idbg-bench-", ignore_cleanup_errors=True) as cache:
        for task in tasks:
            control.on_task(case, task)
            results[task] = measured(case, task, Path(cache), control)
            if isinstance(results[task], Failed):
                break
    return _row_of(case, results)


def _row_of(case: BenchCase, results: dict[Task, TaskResult]) -> Row:
    """The row for these results: for a failed task its reason, and the figures of the tasks before it."""
    row = like(
        Row,
        case,
        program=case.program.label,
        backend=str(case.backend),
        file=file_of(case.program),
        program_hash=program_hash(case),
        at=time.time(),
    )
    for task, answer in results.items():
        match answer:
            case Measured():
                row = replace(row, kind=answer.kind, size=answer.size, machine=_here(answer, case))
                row = replace(row, cold_compile_s=answer.compile_s) if task == "cold" else _timed(row, answer)
            case Checked():
                row = replace(row, **asdict(answer))
            case Failed():
                row = replace(row, status="failed", reason=reason(answer))
    return row


def _timed(row: Row, answer: Measured) -> Row:
    latency = answer.latency
    per_second = answer.items / latency.median * 1e3 if answer.items and latency and latency.median else None
    return replace(
        row,
        warm_compile_s=answer.compile_s,
        latency_ms=latency,
        forward_ms=answer.forward,
        items_per_s=per_second,
        peak_bytes=answer.peak_bytes,
        caveats=tuple(_caveats(answer)),
    )


def _caveats(answer: Measured) -> Iterator[str]:
    """A sentence for each thing that makes the latency doubtful."""
    latency = answer.latency
    if latency is None:
        return
    if not latency.settled:
        yield f"it had not settled after {latency.warmup} calls"
    if latency.noise > NOISY:
        yield f"noisy: the middle half of the samples is {share(latency.noise)} wide"
    if min(latency.samples) * latency.block < STEPS * answer.resolution_ms:
        yield f"below {STEPS} steps of the timer"
    if (others := answer.machine.others) is not None and others > BUSY:
        yield f"other processes used {share(others)} of the processors"


def reason(failed: Failed) -> str:
    """Why the task failed, in one line."""
    failure = failed.failure
    named = failure.kind in ("user", "torch", "backend") and failure.type not in failure.first_line
    return f"{failure.type}: {failure.first_line}" if named else failure.first_line


def _with_speedup(row: Row, eager: Row | None) -> Row:
    mine, theirs = row.latency_ms, eager.latency_ms if eager else None
    if row.backend == EAGER or not mine or not theirs or not mine.median:
        return row
    return replace(row, speedup=theirs.median / mine.median)


def program_hash(case: BenchCase) -> str:
    """16 hexadecimal digits of the program's own file; "" of a module, and of a file that cannot be read."""
    try:
        text = Path(case.program.cwd, case.program.path).read_bytes()
    except OSError:
        return ""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _here(answer: Measured, case: BenchCase) -> Machine:
    return replace(answer.machine, commit=_commit(os.path.dirname(file_of(case.program)) or case.program.cwd))


def _commit(folder: str) -> str:
    """The commit of the git repository around the folder, as `git describe --always --dirty` prints it; "" if there is
    none.
    """
    command = ["git", "-C", folder or ".", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
