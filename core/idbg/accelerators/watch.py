"""Watch the file of the rules for changes by other programs."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from idbg.accelerators.registry import decode
from idbg.schema.errors import AcceleratorError

POLL_SECONDS = 0.5
SETTLE_SECONDS = 0.05  # an editor empties a file before it fills it

Stamp = tuple[int, int, int]


class RulesFile:
    """Watches one file by its size and time.

    On a thread of our own, `changed` gets its path and new text, or `refused` those and why it is not text.
    """

    def __init__(
        self, changed: Callable[[Path, str], None], refused: Callable[[Path, str, AcceleratorError], None]
    ) -> None:
        self._changed, self._refused = changed, refused
        self._path: Path | None = None
        self._text = ""
        self._stamp: Stamp | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, path: Path | None, text: str) -> None:
        """Watch this file, or none, from now on; `text` is what it held when it was read."""
        self._path, self._text, self._stamp = path, text, None

    def start(self) -> None:
        """Look twice a second from now on. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="idbg-rules", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more, and wait for the thread to end. Idempotent, also where a signal came in `start`."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self.look()

    def look(self) -> None:
        """Look at the file once."""
        path = self._path
        now = stamp(path)
        if path is None or now is None or now == self._stamp:
            return
        while not self._stop.wait(SETTLE_SECONDS) and now != (latest := stamp(path)):
            now = latest
        try:
            data = path.read_bytes()
        except OSError:
            return  # between two writes of an editor; the next look sees what came of it
        if path == self._path:
            self._stamp = now
            self._tell(path, data)

    def _tell(self, path: Path, data: bytes) -> None:
        try:
            text = decode(data)
        except AcceleratorError as error:
            self._text = data.decode(errors="replace")
            self._refused(path, self._text, error)
            return
        if text != self._text:
            self._text = text
            self._changed(path, text)


def stamp(path: Path | str | None) -> Stamp | None:
    """What tells that a file is another than it was: its time in nanoseconds, size and inode; None of no file."""
    try:
        status = os.stat(path) if path else None
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status else None
