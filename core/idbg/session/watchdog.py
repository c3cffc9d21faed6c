"""Does a side of a comparison take too long, and what is known of the comparison when it was stopped?"""

import threading
from collections.abc import Callable

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.diff import DiffReport, SideResult
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure
from idbg.schema.runs import Run


class Watchdog:
    """Calls `stop` when a side of the run in hand takes longer than the comparison gives it."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._timer: threading.Timer | None = None
        self._seconds = 0.0
        self.late = ""  # the side that was stopped

    def begin(self, seconds: float) -> None:
        """Expect a run whose sides may each take `seconds`."""
        self._seconds, self.late = seconds, ""

    def take(self, event: SessionEvent) -> None:
        """Hear an event of the run: a side that begins starts the time, one that ends stops it."""
        if isinstance(event, events.SideStarted | events.SideEnded | events.RunEnded) and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if isinstance(event, events.SideStarted):
            self._timer = threading.Timer(self._seconds, self._over, (event.side,))
            self._timer.daemon = True
            self._timer.start()

    def _over(self, side: str) -> None:
        self.late = side
        self._stop()

    def ended(self, event: events.RunEnded) -> events.RunEnded:
        """The run's end; where the watchdog stopped it, with that as the failure."""
        if not self.late or event.failure is None:
            return event
        message = f"the side {self.late} took longer than {self._seconds:g} s, and was stopped"
        hint = "give it more (--timeout), or see in the log what it waits for"
        return replace(event, failure=Failure(kind="worker", type="Timeout", message=message, hint=hint))


def unfinished(run: Run, failure: Failure | None) -> DiffReport:
    """The report of a comparison whose program did not come to its end: what is known, and `failure`."""
    assert run.comparison is not None
    known = run.diff or DiffReport(
        test=run.backend,
        reference=run.comparison.reference,
        verdict="waiting",
        mode="tolerance" if run.comparison.by_tolerance else "float64",
        float64_missing="not run",
    )
    cancelled = failure is not None and failure.kind == "cancelled"
    if known.verdict == "waiting" and not cancelled:  # it waits no more
        known = replace(known, verdict="error")
    if not run.side:  # what was begun is compared
        return replace(known, failure=failure)
    sides = (*run.sides, SideResult(run.side, failure=failure))
    stands = cancelled or known.verdict == "failed"
    return replace(known, verdict=known.verdict if stands else "error", sides=sides, failure=failure)
