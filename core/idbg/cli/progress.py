"""How far is it, on a stream that may be a terminal or a file?

On a terminal the phase is one line that is written over; the program's own output passes by.
"""

import shutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import TextIO

from idbg.format.amounts import elapsed
from idbg.reports.repros import progress_words, sought_words
from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.repros import MinifyProgress

LONG = 1.0  # seconds: of what is over sooner nobody asks how long it takes


class Progress:
    """A session's listener that writes to `stream` (stderr). `typical` gives the seconds that phases take mostly."""

    def __init__(self, stream: TextIO, typical: Callable[[], Mapping[str, float]] = dict) -> None:
        self._stream = stream
        self._typical = cache(typical)
        self._tty = stream.isatty()
        self._shown = ""
        self._open_line = False  # the program wrote a line and did not end it
        self._told: tuple[object, ...] = ()  # of a search: where a file has a line for what is new, not for each try

    def __call__(self, event: SessionEvent) -> None:
        match event:
            case events.PhaseChanged(seconds=None, phase=phase, frame=frame):
                self._show(f"{phase} {frame}".strip() + self._usually(phase))
            case events.SideStarted(side=side):
                self._show(f"side {side}")
            case events.OwnerStarted():
                self._show("whose error it is")
            case events.OwnerJudged():
                self._show("a script of it is tried")
            case events.ReproStarted():
                self._show("a repro is written, and tried")
            case events.MinifyStarted(sought=sought):
                self._show(f"looking for the least that shows {sought_words(sought)}")
            case events.MinifyProgressed(progress=progress):
                self._search(progress)
            case events.OutputWritten(text=text):
                self._pass(text)
                self._open_line = not text.endswith("\n")
            case events.WorkerStarted(torch=version):
                self._show(f"torch {version}")
            case events.Noted(level="warning" | "error", text=text):
                self._end_line()
                self._pass(f"idbg: {text}\n")
            case events.RunEnded() | events.ReproEnded() | events.OwnerEnded() | events.MinifyEnded():
                self._end_line()
                self.clear()
            case _:
                pass

    def clear(self) -> None:
        """Take the phase's line off the terminal."""
        if self._tty and self._shown:
            self._write("\r\x1b[K")
        self._shown = ""

    def _usually(self, phase: str) -> str:
        seconds = self._typical().get(phase, 0.0)
        return f", typical {elapsed(seconds)}" if seconds >= LONG else ""

    def _search(self, progress: MinifyProgress) -> None:
        told = (progress.doing, progress.size, progress.best, progress.others)
        if self._tty or told != self._told:
            self._told = told
            self._show(progress_words(progress))

    def _show(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            self._end_line()
            width = shutil.get_terminal_size().columns - 3  # a line that wraps is not written over as a whole
            self._write(f"\r\x1b[K… {text[:width]}" if self._tty else f"… {text}\n")

    def _end_line(self) -> None:
        if self._open_line:
            self._write("\n")
            self._open_line = False

    def _pass(self, text: str) -> None:
        self.clear()
        self._write(text)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads stderr: the run goes on
