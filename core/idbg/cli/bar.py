"""How does what takes its time look on stderr? On a terminal one line that is written over, with a bar where the time
left is known from something that was measured; elsewhere a plain line for what is new.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TextIO

from idbg.format.amounts import wait
from idbg.format.glyphs import MARKS
from idbg.format.plain_text import one_line
from idbg.format.tables import beginning, cells

EVERY = 0.25  # seconds: nobody reads faster, and a terminal over a slow line need not take more
APART = 2.0  # seconds between plain lines of what was told before
CELLS, ROOM = 14, 46  # of the bar; on a narrower terminal there is none
NAME = 16  # cells of what is done that a time may not take
MOST = 300  # characters of a name that may have any number
LEAST = 1.0  # second: of what is over sooner nobody asks how long it takes


class Doing(NamedTuple):
    """What is done. `kind`: a plain line is written for each new one, and not for each of its words.

    `since`: when it began (None: it is not told). `usual`: the seconds that it mostly takes, where that was measured.
    `done` of `of` are done, and take `each` seconds, of what went before.
    """

    words: str
    kind: str = ""
    since: float | None = None
    usual: float | None = None
    done: int = 0
    of: int = 0
    each: float | None = None
    began: float = 0.0


def told(doing: Doing, now: float) -> tuple[float | None, str]:
    """Which part of it is done (None: that is not known), and what is said of the time."""
    pieces = [f"{doing.done + 1} of {doing.of}"] if doing.of else []
    part = doing.done / doing.of if doing.of else None
    spent = None if doing.since is None else max(now - doing.since, 0.0)
    if spent is not None:
        pieces.append(wait(spent))
    if doing.of and doing.each is not None:
        ahead = doing.each * (doing.of - doing.done - 1) + max(doing.each - (now - doing.began), 0.0)
        pieces += [f"about {wait(ahead)} left"] if ahead >= LEAST else []
    elif doing.usual is not None and doing.usual >= LEAST and spent is not None:
        part = min(spent / doing.usual, 1.0)
        over = spent - doing.usual
        pieces.append(f"{wait(over)} over the usual {wait(doing.usual)}" if over >= LEAST else _left(-over))
    return part, ", ".join(piece for piece in pieces if piece)


def line(doing: Doing, now: float, width: int) -> str:
    """The line for a terminal of so many cells; the last one stays free, as some terminals would wrap there."""
    part, time_words = told(doing, now)
    bar = ""
    if part is not None and width >= ROOM:
        full = min(int(part * CELLS), CELLS - 1)  # never full: it is not done
        bar = f"[{'#' * full}{'.' * (CELLS - full)}] "
    head = bar or f"{MARKS['ellipsis']} "
    tail = f"  {time_words}" if time_words else ""
    room = max(width - 1 - cells(head), 0)
    words = one_line(doing.words, MOST)
    if cells(tail) > room - min(cells(words), NAME):
        tail = ""
    return f"{head}{beginning(words, room - cells(tail))}{tail}"[: max(width - 1, 0)]


def _left(seconds: float) -> str:
    return f"about {wait(seconds)} left" if seconds >= LEAST else ""


class Bar:
    """Writes to `stream`; of more than one thread at once. `clear` takes it off the terminal."""

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        ticks: bool = True,
    ) -> None:
        self._stream, self._quiet, self._clock, self._ticks = stream, quiet, clock, ticks
        self.on_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._doing: Doing | None = None
        self._drawn = ""
        self._open = False  # what others wrote last did not end its line
        self._at = float("-inf")  # when a line was written last
        self._told: set[str] = set()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def show(self, doing: Doing) -> None:
        """This is done from now on."""
        if self._quiet:
            return
        with self._lock:
            self._doing = doing
            if not self.on_terminal:
                self._plain(doing)
                return
            if self._open:
                self.end_line()
            if self._clock() - self._at >= EVERY:
                self._draw()
            if self._ticks and self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Nothing is done any more."""
        with self._lock:
            self._doing = None
            self._wipe()

    def close(self) -> None:
        """Clear it for good."""
        self._stop.set()
        self.clear()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While this lasts, others may write to the terminal."""
        with self._lock:
            self._wipe()
            yield

    def passed(self, text: str) -> None:
        """What others wrote, a whole line or not: it stays where it is, and the line that is written over is below."""
        with self.aside():
            self._write(text)
            self._open = not text.endswith("\n")

    def beside(self, text: str, stream: TextIO) -> None:
        """What others wrote, to a stream that may be on the same terminal. Where nobody reads it, it is lost."""
        with self.aside():
            with suppress(OSError, ValueError):
                stream.write(text)
                stream.flush()
            if stream.isatty():
                self._open = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that others began."""
        with self._lock:
            if self._open:
                self._write("\n")
            self._open = False

    def draw(self) -> None:
        """Write the line as it is now, where it changed."""
        with self._lock:
            self._draw()

    def _tick(self) -> None:
        while not self._stop.wait(EVERY):
            self.draw()

    def _draw(self) -> None:
        if self._doing is None or self._open:
            return
        text = line(self._doing, self._clock(), shutil.get_terminal_size().columns)
        if text != self._drawn:
            self._write(f"\r\x1b[K{text}")
            self._drawn, self._at = text, self._clock()

    def _plain(self, doing: Doing) -> None:
        now = self._clock()
        kind = doing.kind or doing.words
        if doing.words == self._drawn or (kind in self._told and now - self._at < APART):
            return
        self._told.add(kind)
        of = f" ({doing.done + 1} of {doing.of})" if doing.of else ""
        usual = f", usually {wait(doing.usual)} in all" if doing.usual is not None and doing.usual >= LEAST else ""
        self._drawn, self._at = doing.words, now
        self.end_line()
        self._write(f"{MARKS['ellipsis']} {one_line(doing.words, MOST)}{of}{usual}\n")

    def _wipe(self) -> None:
        if self.on_terminal and self._drawn:
            self._write("\r\x1b[K")
            self._drawn = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads stderr: what is done goes on
