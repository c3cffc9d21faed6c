"""Record what a test compiles as a session: in memory, and on disk once somebody may need it."""

import logging
import threading
from pathlib import Path

import idbg
from idbg.schema import events
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Program
from idbg.schema.runs import History
from idbg.session.event_bus import EventBus
from idbg.session.store import Store

_log = logging.getLogger(__name__)


class Recording:
    """A session that this process writes; with `live`, to disk as it happens. `idbg-tui` and Session.open read it.

    Its folder is created in `output`, with a name that begins with `name`.
    """

    def __init__(self, program: Program, output: Path, name: str, *, live: bool = False) -> None:
        self.program, self.output, self.name, self.live = program, output, name, live
        self.history = History()
        self.folder: Path | None = None
        self.lock = threading.RLock()  # compile times are emitted by another thread
        self._events: list[SessionEvent] = []
        self._bus: EventBus | None = None

    def emit(self, event: SessionEvent) -> None:
        """Record an event. If the disk refuses it, that is logged once: no test may fail by it."""
        with self.lock:
            self.history.apply(event)
            if self._bus is not None:
                self._bus.emit(event)
                return
            self._events.append(event)
            if self.live:
                try:
                    self.keep()
                except OutputError as error:
                    self.live = False
                    _log.warning("%s", error.in_one_line)

    def keep(self) -> Path:
        """The session's folder, with everything so far in it. Raises OutputError if it cannot be created."""
        with self.lock:
            if self.folder is None:
                from idbg.engine.watching import this_process

                store = Store.create(self.output, self.program, name=self.name)
                self.folder, self._bus = store.folder, EventBus(store)
                opened = events.SessionOpened(version=idbg.__version__, program=self.program, folder=str(store.folder))
                for event in (opened, this_process(), *self._events):
                    self._bus.emit(event)
                self._events.clear()
            assert self._bus is not None
            self._bus.flush()
            return self.folder

    def close(self) -> None:
        """End the session; what is on disk is complete."""
        if self._bus is not None:
            self._bus.close()
