"""How does a session measure in the background, until it is done or told to stop?"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.bench import BenchCase, Row, Task, Timed
from idbg.schema.bench_steps import BenchStep
from idbg.schema.errors import IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure


class BenchJob:
    """Measures the cases on a thread of its own; `emit` hears of each row, and last of the end. With `kernels` it
    times each of their kernels instead.

    Rows are kept in the database before they are told; where that cannot be, the end says so and the rows are told.
    """

    def __init__(
        self,
        cases: list[BenchCase],
        database: Path | None,
        emit: Callable[[SessionEvent], None],
        *,
        known: Sequence[Row] = (),
        kernels: bool = False,
    ) -> None:
        self._cases, self._database, self._emit, self._kernels = cases, database, emit, kernels
        self._known = known
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="idbg-bench", daemon=True)

    def start(self) -> None:
        """Tell how many rows are asked for, and begin; returns at once."""
        self._emit(events.BenchStarted(cases=len(self._cases)))
        self._thread.start()

    def stop(self) -> None:
        """End the process that measures now, and begin no other; returns at once."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end, if it was started."""
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            failure = self._timed() if self._kernels else self._measured()
        # Broad on purpose: the thread's border. A session that waits for its end must have it.
        except Exception as error:
            failure = Failure(kind="idbg", type=type(error).__name__, message=f"the benchmark stopped: {error}")
        cancelled = Failure(kind="cancelled", message="cancelled") if self._stop.is_set() else None
        self._emit(events.BenchEnded(failure=cancelled or failure))

    def _timed(self) -> Failure | None:
        from idbg.bench.runner import kernel_times

        for case in self._cases:
            self._told(case, "kernels")
            result = kernel_times(case, stepped=self._stepped, stopped=self._stop.is_set)
            if self._stop.is_set():
                break
            told = events.KernelsTimed(program=case.program.label, backend=str(case.backend))
            if isinstance(result, Timed):
                self._emit(replace(told, times=result.times))
            else:
                self._emit(replace(told, failure=result.failure))
        return None

    def _measured(self) -> Failure | None:
        """Measure the rows, and give the failure that kept one from the database; None where all are kept."""
        # not before it is asked for: the first paint would wait for sqlite3
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
            stopped = self._stop.is_set
            for row in suite.measure(
                refused, told=self._told, stepped=self._stepped, stopped=stopped, known=self._known
            ):
                self._emit(events.RowMeasured(row=row))
        return failure

    def _told(self, case: BenchCase, task: Task) -> None:
        self._emit(events.BenchTaskStarted(program=case.program.label, backend=str(case.backend), task=task))

    def _stepped(self, step: BenchStep) -> None:
        self._emit(events.BenchStepStarted(step=step.number, of=step.of, words=step.words))
