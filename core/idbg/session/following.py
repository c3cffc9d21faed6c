"""Follow the log of a session that another process writes: its events, as they come."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from idbg.schema.events import Noted, SessionEvent
from idbg.session.deferred import LogPlaces
from idbg.session.reading import LINE_LIMIT, Unreadable, event_on, most_bytes, opened_log

TICK = 0.1  # seconds between two looks
AT_ONCE, REST = 50, 0.002  # events, and seconds after them in which the screen answers keys


class LogTail:
    """What comes after the events that were read. Raises OutputError where there is no log."""

    def __init__(self, folder: Path) -> None:
        self._log = opened_log(folder)
        self._places = LogPlaces(self._log.fileno())
        self._rest = b""
        self._lines = 0
        self._read = 0
        self.damage = ""
        """Why nothing more is read; "" while all can be."""

    def more(self) -> Iterator[SessionEvent]:
        """The events that are whole by now, and were not returned before."""
        while not self.damage and (line := self._log.readline(LINE_LIMIT + 1 - len(self._rest))):
            self._rest += line
            if not line.endswith(b"\n") and len(self._rest) <= LINE_LIMIT:
                return
            whole, self._rest = self._rest, b""
            self._lines += 1
            try:
                event = event_on(self._lines, whole, room=most_bytes() - self._places.held)
            except Unreadable as error:
                self.damage = f"the session's log is not whole: {error}"
                return
            begin, self._read = self._read, self._read + len(whole)
            if event is not None:
                yield self._places.taken(event, begin, len(whole))

    def close(self) -> None:
        """Close the log."""
        self._log.close()


class LogFollower:
    """Passes the events that a log gets to `emit`, on a thread of its own, until `stop`."""

    def __init__(self, tail: LogTail, emit: Callable[[SessionEvent], None]) -> None:
        self._tail, self._emit = tail, emit
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="idbg-follow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Pass nothing more. Idempotent."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
            self._tail.close()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            for number, event in enumerate(self._tail.more(), 1):
                self._emit(event)
                if self._stopped.is_set():
                    return
                if number % AT_ONCE == 0:
                    self._stopped.wait(REST)
            if self._tail.damage:
                self._emit(Noted(level="warning", text=self._tail.damage, missing=True))
                return
            self._stopped.wait(TICK)
