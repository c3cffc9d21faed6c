"""How does a session search for the guilty in the background, until it is done or told to stop?"""

import threading
from collections.abc import Callable

from idbg.schema import events
from idbg.schema.errors import IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.guilty import Bisected, Question, Tried
from idbg.schema.programs import Failure


class BisectJob:
    """Answers the question on a thread of its own; `emit` hears of each try, and last of the end."""

    def __init__(self, question: Question, run: int, emit: Callable[[SessionEvent], None]) -> None:
        self._question, self._run, self._emit = question, run, emit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._search, name="idbg-bisect", daemon=True)

    def start(self) -> None:
        """Tell what is asked, and begin; returns at once."""
        self._emit(events.BisectStarted(run=self._run, question=self._question))
        self._thread.start()

    def stop(self) -> None:
        """End the try that is made now, and make no other; returns at once."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end, if it was started."""
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join()

    def _search(self) -> None:
        found: Bisected | None = None
        failure: Failure | None = None
        try:
            # not before it is asked for: the first paint would wait
            from idbg.bisect.job import bisected

            found = bisected(self._question, self._told, self._stop.is_set)
        except IdbgError as error:
            failure = error.failure()
        # Broad on purpose: the thread's border. A session that waits for its end must have it.
        except Exception as error:
            failure = Failure(kind="idbg", type=type(error).__name__, message=f"the search stopped: {error}")
        if self._stop.is_set():
            failure = Failure(kind="cancelled", message="cancelled")
        self._emit(events.BisectEnded(run=self._run, bisected=found, failure=failure))

    def _told(self, what: str, tried: Tried | None) -> None:
        self._emit(events.BisectProgressed(run=self._run, what=what, tried=tried))
