"""Record the events of a session: fold them, write them to disk and pass them to listeners."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable

from idbg.schema.events import Noted, RunEnded, RunStarted, SessionEvent
from idbg.schema.runs import History, fold
from idbg.session.store import Store

Listener = Callable[[SessionEvent], None]

_log = logging.getLogger(__name__)


class EventBus:
    """Every event so far; each new one is folded at once, then written to disk and passed on by a thread of its own.

    Who emits never waits for the disk.
    """

    def __init__(self, store: Store | None = None, past: Iterable[SessionEvent] = ()) -> None:
        self.store = store
        self._events = list(past)
        self.history: History = fold(self._events)
        self._changed = threading.Condition()
        self._listeners: tuple[Listener, ...] = ()
        self._waiting = 0
        self._closed = False
        self._ended = False  # the thread delivers nothing more
        self._deliveries: queue.SimpleQueue[tuple[SessionEvent, tuple[Listener, ...]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._deliver, name="idbg-session", daemon=True)
        self._thread.start()

    @property
    def events(self) -> list[SessionEvent]:
        """A copy of all events so far, in order."""
        with self._changed:
            return self._events.copy()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Pass every later event to `listener`, in order; call the result to unsubscribe."""
        with self._changed:
            self._listeners += (listener,)

        def unsubscribe() -> None:
            with self._changed:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def emit(self, event: SessionEvent) -> None:
        """Apply the event to the history and queue it for the disk and the listeners; returns at once. A failing disk
        is noted once, and the session continues in memory.
        """
        with self._changed:
            self._events.append(event)
            self.history.apply(event)
            self._waiting += 1
            self._deliveries.put((event, self._listeners))  # later subscribers do not get it

    def forget(self, run: int) -> None:
        """Free the graphs, code and output of a finished run; its verdict stays."""
        with self._changed:
            held = self.history.runs.get(run)
            if held is None or held.ended is None:
                return
            held.let_go()
            kept = (RunStarted, RunEnded)
            self._events = [
                event for event in self._events if getattr(event, "run", 0) != run or isinstance(event, kept)
            ]

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until every event is on disk and delivered; returns at once when called from a listener.

        Returns False after `timeout` seconds, or if the delivery thread has ended.
        """
        if threading.current_thread() is self._thread:
            return True
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0 or self._ended, timeout)
            return self._waiting == 0

    def close(self) -> None:
        """Deliver the remaining events, notes about the disk included, and end the thread. Idempotent."""
        if not self._closed:
            self._closed = True
            self.flush()
        self._deliveries.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _write(self, event: SessionEvent) -> None:
        store = self.store
        if store is None:
            return
        try:
            note = store.append(event)
            if note is not None:
                self.emit(note)
        # Broad on purpose: beside the disk's OSError, encoding a plug-in's record may raise anything (TypeError,
        # UnicodeError, RecursionError), and none of it may end the delivery thread.
        except Exception as error:
            self.store = None
            store.close()
            why = getattr(error, "strerror", None) or error
            text = f"cannot write to {store.folder}: {why}; from here on nothing is saved"
            self.emit(Noted(level="error", text=text, missing=True))

    def _deliver(self) -> None:
        try:
            while (delivery := self._deliveries.get()) is not None:
                try:
                    self._deliver_one(*delivery)
                finally:
                    with self._changed:
                        self._waiting -= 1
                        self._changed.notify_all()
            self._summarize()
        finally:  # `flush` must not wait for a thread that has ended
            if self.store is not None:
                self.store.close()
                self.store = None
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _deliver_one(self, event: SessionEvent, listeners: tuple[Listener, ...]) -> None:
        self._write(event)
        if isinstance(event, RunStarted | RunEnded):
            self._summarize()
        for listener in listeners:
            if listener not in self._listeners:
                continue  # it has unsubscribed meanwhile
            try:
                listener(event)
            # Broad on purpose: listeners belong to user interfaces, and their errors must not end the session.
            except Exception:
                _log.exception("a listener of the session failed")

    def _summarize(self) -> None:
        store = self.store
        if store is None:
            return
        try:
            with self._changed:
                summary = store.summary(self.history)
            if summary is not None:
                store.keep(summary)
        # Broad on purpose: only lists need the summary, and they read the log if there is none.
        except Exception:
            _log.exception("the session's summary could not be written")
