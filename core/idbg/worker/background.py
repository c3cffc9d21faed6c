"""Run a long job of a session, in processes of its own, on a thread."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from idbg.schema.errors import IdbgError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure


class OwnProcesses(ABC):
    """A job that runs in processes of its own, and takes minutes. `emit` gets its events, the end last."""

    NAME: ClassVar[str]

    def __init__(self, emit: Callable[[SessionEvent], None]) -> None:
        self._emit = emit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._whole, name=self.NAME, daemon=True)

    def start(self) -> None:
        """Emit the event of the beginning, and start; returns at once."""
        self._emit(self._began())
        self._thread.start()

    def stop(self) -> None:
        """End the process that is waited for now, and begin no other; returns at once."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end, if it was started."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    @abstractmethod
    def _began(self) -> SessionEvent:
        """The event of its beginning."""

    @abstractmethod
    def _work(self) -> Failure | None:
        """Do the job until `_stop` is set; returns the failure to end with. Raises IdbgError."""

    @abstractmethod
    def _ended(self, failure: Failure | None) -> SessionEvent:
        """The event of its end."""

    def _whole(self) -> None:
        try:
            failure = self._work()
        except IdbgError as error:
            failure = error.failure()
        # Broad on purpose: the thread's border. The session waits for the event of the end.
        except Exception as error:
            failure = Failure(kind="idbg", type=type(error).__name__, message=f"the {self.NAME} stopped: {error}")
        if self._stop.is_set():
            failure = Failure(kind="cancelled", message="cancelled")
        self._emit(self._ended(failure))
