"""Show progress on stderr: on a terminal one line that is overwritten, with a bar where a measurement gives the
remaining time; elsewhere a plain line for each new activity.

`rich.progress` does not fit: output of the program passes by, also lines without an end, and a pipe gets plain lines.
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

EVERY = 0.25  # seconds between updates: for terminals over slow connections
APART = 2.0  # seconds between plain lines of the same kind
CELLS, ROOM = 14, 46  # the bar's width, and the narrowest terminal that has one
NAME = 16  # cells that are reserved for the activity
MOST = 300  # characters of an activity
LEAST = 1.0  # seconds: shorter times are not shown


class Activity(NamedTuple):
    """What is being done. `kind`: a pipe gets one plain line for each kind, not for each text.

    `since`: its start (None: no time is shown). `usual`: the seconds that it usually takes, where that was measured.
    `done` of `of` steps are done, and took `each` seconds on average; the current one started at `began`.
    """

    words: str
    kind: str = ""
    since: float | None = None
    usual: float | None = None
    done: int = 0
    of: int = 0
    each: float | None = None
    began: float = 0.0


def part_and_time(activity: Activity, now: float) -> tuple[float | None, str]:
    """The finished part (None: unknown), and the text of the time."""
    pieces = [f"{activity.done + 1} of {activity.of}"] if activity.of else []
    part = activity.done / activity.of if activity.of else None
    spent = None if activity.since is None else max(now - activity.since, 0.0)
    if spent is not None:
        pieces.append(wait(spent))
    if activity.of and activity.each is not None:
        ahead = activity.each * (activity.of - activity.done - 1) + max(activity.each - (now - activity.began), 0.0)
        pieces += [f"about {wait(ahead)} left"] if ahead >= LEAST else []
    elif activity.usual is not None and activity.usual >= LEAST and spent is not None:
        part = min(spent / activity.usual, 1.0)
        over = spent - activity.usual
        pieces.append(f"{wait(over)} over the usual {wait(activity.usual)}" if over >= LEAST else _left(-over))
    return part, ", ".join(piece for piece in pieces if piece)


def line(activity: Activity, now: float, width: int) -> str:
    """The line for a terminal of this width; the last cell stays free, as some terminals wrap there."""
    part, time_words = part_and_time(activity, now)
    bar = ""
    if part is not None and width >= ROOM:
        full = min(int(part * CELLS), CELLS - 1)  # never full: it has not finished
        bar = f"[{'#' * full}{'.' * (CELLS - full)}] "
    head = bar or f"{MARKS['ellipsis']} "
    tail = f"  {time_words}" if time_words else ""
    room = max(width - 1 - cells(head), 0)
    words = one_line(activity.words, MOST)
    if cells(tail) > room - min(cells(words), NAME):
        tail = ""
    return f"{head}{beginning(words, room - cells(tail))}{tail}"[: max(width - 1, 0)]


def _left(seconds: float) -> str:
    return f"about {wait(seconds)} left" if seconds >= LEAST else ""


class Bar:
    """Writes progress to `stream`. Thread-safe."""

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
        self._activity: Activity | None = None
        self._drawn = ""
        self._open = False  # the last output of others has no end of line
        self._at = float("-inf")  # the time of the last line
        self._kinds: set[str] = set()  # those that have a plain line
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def show(self, activity: Activity) -> None:
        """Show this activity from now on."""
        if self._quiet:
            return
        with self._lock:
            self._activity = activity
            if not self.on_terminal:
                self._plain(activity)
                return
            if self._open:
                self.end_line()
            if self._clock() - self._at >= EVERY:
                self._draw()
            if self._ticks and self._thread is None:
                self._thread = threading.Thread(target=self._tick, name="progress", daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Remove the line."""
        with self._lock:
            self._activity = None
            self._wipe()

    def close(self) -> None:
        """Remove the line, and stop."""
        self._stop.set()
        self.clear()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others may write to the terminal in this block."""
        with self._lock:
            self._wipe()
            yield

    def passed(self, text: str) -> None:
        """Write output of others above the progress line."""
        with self.aside():
            self._write(text)
            self._open = not text.endswith("\n")

    def beside(self, text: str, stream: TextIO) -> None:
        """Write output of others to another stream, which may be the same terminal."""
        with self.aside():
            with suppress(OSError, ValueError):
                stream.write(text)
                stream.flush()
            if stream.isatty():
                self._open = not text.endswith("\n")

    def end_line(self) -> None:
        """End an unfinished line of others."""
        with self._lock:
            if self._open:
                self._write("\n")
            self._open = False

    def draw(self) -> None:
        """Write the line if it changed."""
        with self._lock:
            self._draw()

    def _tick(self) -> None:
        while not self._stop.wait(EVERY):
            self.draw()

    def _draw(self) -> None:
        if self._activity is None or self._open:
            return
        text = line(self._activity, self._clock(), shutil.get_terminal_size().columns)
        if text != self._drawn:
            self._write(f"\r\x1b[K{text}")
            self._drawn, self._at = text, self._clock()

    def _plain(self, activity: Activity) -> None:
        now = self._clock()
        kind = activity.kind or activity.words
        if activity.words == self._drawn or (kind in self._kinds and now - self._at < APART):
            return
        self._kinds.add(kind)
        of = f" ({activity.done + 1} of {activity.of})" if activity.of else ""
        usual = (
            f", usually {wait(activity.usual)} in all" if activity.usual is not None and activity.usual >= LEAST else ""
        )
        self._drawn, self._at = activity.words, now
        self.end_line()
        self._write(f"{MARKS['ellipsis']} {one_line(activity.words, MOST)}{of}{usual}\n")

    def _wipe(self) -> None:
        if self.on_terminal and self._drawn:
            self._write("\r\x1b[K")
            self._drawn = ""

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads stderr
