"""Run a bisection for a session in the background."""

from collections.abc import Callable

from idbg.schema import events
from idbg.schema.bisection import Bisected, Question, Tried
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure
from idbg.worker.background import OwnProcesses


class BisectJob(OwnProcesses):
    """Answers the question; `emit` gets an event for each try."""

    NAME = "search"

    def __init__(self, question: Question, run: int, emit: Callable[[SessionEvent], None]) -> None:
        super().__init__(emit)
        self._question, self._run = question, run
        self._found: Bisected | None = None

    def _began(self) -> SessionEvent:
        return events.BisectStarted(run=self._run, question=self._question)

    def _work(self) -> None:
        # imported late: the first paint would wait
        from idbg.bisect.job import bisected

        self._found = bisected(self._question, self._on_progress, self._stop.is_set)

    def _ended(self, failure: Failure | None) -> SessionEvent:
        return events.BisectEnded(run=self._run, bisected=self._found, failure=failure)

    def _on_progress(self, what: str, tried: Tried | None) -> None:
        self._emit(events.BisectProgressed(run=self._run, what=what, tried=tried))
