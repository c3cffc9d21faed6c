"""Run the programs of the kit with a backend, each in a process of its own.

The processes are those of the minifier: forked from one that has torch and the backend's package imported. What
crashes or hangs there is run once more in a new Python, as a library may not survive a fork: only that counts.
"""

import contextlib
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from idbg.config import options as families
from idbg.conformance import catalogue
from idbg.engine.minify.forks.client import Forks
from idbg.engine.minify.forks.outcome import TryResult
from idbg.engine.minify.forks.processes import memory_of_machine
from idbg.schema.bench import BenchBackend, BenchCase, Conformed, Failed, TaskResult
from idbg.schema.conformance import CONTROL, HANG, Conformance, ConformanceProgram, ConformanceRow
from idbg.schema.programs import Failure, OptionValue, Program
from idbg.worker.guard import temporary_folder

SECONDS = 120.0
"""The limit of each program."""
HANGS = 3  # in a row, after which the rest is not run
IMPORTS = 2  # times what importing took at first: a busy machine
SAMPLES = 40  # of each latency: with fewer than nine of each side no difference is significant
_SCRIPT = "from idbg.worker.conform import main\n\nmain()\n"
_DECODER: msgspec.json.Decoder[TaskResult] = msgspec.json.Decoder(TaskResult)
_PRINTED = 400  # characters of what a process printed before its end


class ConformanceRunner:
    """Runs programs with one backend; `samples`: of each latency, 0 for none. Leaving it ends all processes."""

    def __init__(
        self,
        backend: str,
        options: dict[str, OptionValue] | None = None,
        *,
        seconds: float = SECONDS,
        samples: int = SAMPLES,
    ) -> None:
        self.backend, self.options = backend, dict(options or {})
        self.seconds, self.samples = seconds, samples
        self._stack = contextlib.ExitStack()
        self._warm: Forks | None = None
        self._start_seconds = 0.0  # until a process could be forked: what importing takes here
        self._hangs_itself = False  # a program has hung in a process that was not forked

    def __enter__(self) -> Self:
        """Start the process that others are forked from."""
        self._folder = self._stack.enter_context(temporary_folder("idbg-"))
        self._script = self._folder / "conform.py"
        self._script.write_text(_SCRIPT)
        self._warm = self._stack.enter_context(self._forks("warm", fork=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._warm = None
        self._stack.close()

    def row(self, program: ConformanceProgram) -> ConformanceRow:
        """Run one program. Its exceptions, a crash and a hang are in the row. Raises WorkerError where no process can
        be started.
        """
        assert self._warm is not None, "enter the runner first"
        began = time.monotonic()
        result = self._answer(self._warm, program)
        if isinstance(result, TryResult) and not self._survives(result):
            with self._forks("cold", fork=False) as cold:
                again = self._answer(cold, program)
            if not isinstance(again, TryResult):  # its package does not survive a fork
                self._warm = self._stack.enter_context(self._forks("unforked", fork=False))
            self._hangs_itself |= isinstance(again, TryResult) and again.hung
            if not (isinstance(again, TryResult) and again.hung and not result.hung):  # on a busy machine it is slow
                result = again
        seconds = time.monotonic() - began
        return self._with_control(self._row(program, result, seconds))

    def _row(
        self, program: ConformanceProgram, result: Conformed | Failed | TryResult, seconds: float
    ) -> ConformanceRow:
        if isinstance(result, TryResult):
            return ConformanceRow(program=program, failure=self._ended(result), seconds=seconds)
        if isinstance(result, Failed):
            return ConformanceRow(program=program, failure=result.failure, seconds=seconds)
        return ConformanceRow(program=program, result=result, seconds=seconds)

    def _with_control(self, row: ConformanceRow) -> ConformanceRow:
        """The row with the grade of CONTROL, where torch's own code raised what fails with another backend."""
        cause = row.cause
        if cause is None or cause.kind != "torch" or self.backend == CONTROL or self._warm is None:
            return row
        result = self._answer(self._warm, row.program, CONTROL)
        return replace(row, control=self._row(row.program, result, 0.0).grade)

    def _survives(self, result: TryResult) -> bool:
        """Whether it is known that what ended a process so is no matter of forks."""
        assert self._warm is not None
        return not self._warm.forks or (result.hung and self._hangs_itself)

    def _forks(self, name: str, *, fork: bool) -> Forks:
        return Forks(self._folder, (), self._folder / name, fork, backend=self.backend)

    def _answer(self, forks: Forks, program: ConformanceProgram, backend: str = "") -> Conformed | Failed | TryResult:
        """The answer of a process, or how that ended without one."""
        options = {} if backend else self.options
        case = case_of(program, backend or self.backend, options, self.samples)
        answer = self._folder / "answer.json"
        answer.unlink(missing_ok=True)
        arguments = (msgspec.json.encode(case).decode(), str(answer))
        memory, began = memory_of_machine() // 2, time.monotonic()
        # a new Python imports torch and the backend first
        seconds = self.seconds if forks.forks else self.seconds + IMPORTS * self._start_seconds
        ended = forks.run(self._script, seconds=seconds, memory=memory, arguments=arguments)
        self._start_seconds = max(self._start_seconds, time.monotonic() - began - ended.seconds)
        try:
            result = _DECODER.decode(answer.read_bytes())
        except (OSError, msgspec.DecodeError):  # it crashed or was ended before
            return ended
        assert isinstance(result, Conformed | Failed)
        return result

    def _ended(self, result: TryResult) -> Failure:
        """The failure of a process that gave no answer."""
        lines = [line.strip() for line in result.printed.splitlines() if line.strip()]
        last = f": {lines[-1][:_PRINTED]}" if lines else ""
        if result.hung:
            message = f"it had not ended after {self.seconds:g} s, and was stopped"
            return Failure(kind="backend", type=HANG, message=message, hint="give it more (--timeout)")
        if result.out_of_memory:
            return Failure(kind="backend", type="OutOfMemory", message="it took more than half of the machine's memory")
        if result.signal:
            return Failure(
                kind="backend", type=result.signal, message=f"the process was killed by {result.signal}{last}"
            )
        message = f"the process exited with status {result.status}{last}"
        return Failure(kind="backend", type="Exit", message=message)


def case_of(
    program: ConformanceProgram, backend: str, options: dict[str, OptionValue], samples: int = SAMPLES
) -> BenchCase:
    """The program as a case of a benchmark."""
    file = Path(program.file)
    return BenchCase(
        program=Program(str(file), program.name, cwd=str(file.parent)),
        backend=BenchBackend(backend),
        runs=samples,
        options=options,
        options_for=families.family(backend),
    )


def _ignore(*_: object) -> None: ...


@dataclass(frozen=True)
class RunControl:
    """Is called with each program as it begins and each row as it is known; `seconds` is the limit of each program."""

    begun: Callable[[ConformanceProgram], None] = _ignore
    done: Callable[[ConformanceRow], None] = _ignore
    seconds: float = SECONDS


DEFAULT_CONTROL = RunControl()


def conformance(
    backend: str,
    programs: Sequence[ConformanceProgram],
    options: dict[str, OptionValue] | None = None,
    control: RunControl = DEFAULT_CONTROL,
) -> Conformance:
    """Run the programs with the backend. It stops at a backend that cannot be used, and after HANGS hangs in a row."""
    began, at = time.monotonic(), time.time()
    rows: list[ConformanceRow] = []
    problem: Failure | None = None
    with ConformanceRunner(backend, options, seconds=control.seconds) as runner:
        for program in programs:
            control.begun(program)
            row = runner.row(program)
            if row.failure is not None and row.failure.kind == "input":
                problem = row.failure
                break
            rows.append(row)
            control.done(row)
            if len(rows) >= HANGS and all(_is_hang(each) for each in rows[-HANGS:]):
                problem = Failure(
                    kind="backend", type=HANG, message=f"{HANGS} programs in a row did not end: the rest was not run"
                )
                break
    return Conformance(
        backend=backend,
        rows=tuple(rows),
        expected=tuple(programs),
        versions=versions(backend),
        problem=problem,
        seconds=time.monotonic() - began,
        at=at,
    )


def _is_hang(row: ConformanceRow) -> bool:
    return row.failure is not None and row.failure.type == HANG


def versions(backend: str) -> dict[str, str]:
    """The versions of idbg, torch, Python and the packages that register the backend, by name."""
    import platform

    import idbg

    found = {"idbg": idbg.__version__, "Python": platform.python_version()}
    names = ["torch", *_packages(backend)]
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _packages(backend: str) -> list[str]:
    """The distributions whose entry points have the backend's name."""
    groups = ("torch_dynamo_backends", "idbg.backends")
    points = [point for group in groups for point in importlib.metadata.entry_points(group=group, name=backend)]
    return [point.dist.name for point in points if point.dist is not None]


def programs_of(folder: Path, *, quick: bool, names: Sequence[str] = ()) -> tuple[ConformanceProgram, ...]:
    """The chosen programs, copied into the folder, where they are the user's. Raises BadInput, OutputError."""
    return catalogue.chosen(catalogue.programs(catalogue.copied(folder), quick=quick and not names), names)
