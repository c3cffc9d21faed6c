"""Measure a session's benchmark in the background."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.bench import BenchCase, BenchStep, Row, Task, Timed
from idbg.schema.errors import IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure
from idbg.worker.background import OwnProcesses

if TYPE_CHECKING:
    from idbg.bench.runner import RunControl


class BenchJob(OwnProcesses):
    """Measures the cases, and emits each row. With `kernels` it times each of their kernels instead.

    Rows are stored in the database before they are emitted. If the database cannot be used, the end event says so and
    the rows are emitted.
    """

    NAME = "benchmark"

    def __init__(
        self,
        cases: list[BenchCase],
        database: Path | None,
        emit: Callable[[SessionEvent], None],
        *,
        known: Sequence[Row] = (),
        kernels: bool = False,
    ) -> None:
        super().__init__(emit)
        self._cases, self._database, self._kernels, self._known = cases, database, kernels, known

    def _began(self) -> SessionEvent:
        return events.BenchStarted(cases=len(self._cases))

    def _work(self) -> Failure | None:
        return self._timed() if self._kernels else self._measured()

    def _ended(self, failure: Failure | None) -> SessionEvent:
        return events.BenchEnded(failure=failure)

    def _timed(self) -> Failure | None:
        from idbg.bench.runner import kernel_times

        for case in self._cases:
            self._started(case, "kernels")
            result = kernel_times(case, self._control())
            if self._stop.is_set():
                break
            timed = events.KernelsTimed(program=case.program.label, backend=str(case.backend))
            if isinstance(result, Timed):
                self._emit(replace(timed, times=result.times))
            else:
                self._emit(replace(timed, failure=result.failure))
        return None

    def _measured(self) -> Failure | None:
        """Measure the rows. Returns the failure that kept one from the database; None if all are stored."""
        # imported late: the first paint would wait for sqlite3
        from idbg.bench.history import BenchHistory, default_path
        from idbg.bench.suite import Suite

        failure: Failure | None = None

        def refused(error: IdbgError, row: Row | None = None) -> None:
            nonlocal failure
            failure = error.failure()

        with ExitStack() as stack:
            try:
                history = stack.enter_context(closing(BenchHistory(self._database or default_path())))
                for note in history.notes:
                    self._emit(events.Noted(level="warning", text=note))
                suite = Suite.begin(history, self._cases)
            except IdbgError as error:
                refused(error)
                suite = Suite(None, 0, self._cases)
            for row in suite.measure(refused, self._control(), known=self._known):
                self._emit(events.RowMeasured(row=row))
        return failure

    def _control(self) -> "RunControl":
        from idbg.bench.runner import RunControl

        return RunControl(self._started, self._stepped, self._stop.is_set)

    def _started(self, case: BenchCase, task: Task) -> None:
        self._emit(events.BenchTaskStarted(program=case.program.label, backend=str(case.backend), task=task))

    def _stepped(self, step: BenchStep) -> None:
        self._emit(events.BenchStepStarted(step=step.number, of=step.of, words=step.words))
