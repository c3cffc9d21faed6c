"""How far is it, on a stream that may be a terminal or a file?

On a terminal the phase is one line that is written over; the program's own output passes by.
"""

from typing import TextIO

from idbg.schema import events
from idbg.schema.events import SessionEvent


class Progress:
    """A session's listener that writes to `stream` (stderr)."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._tty = stream.isatty()
        self._shown = ""
        self._open_line = False  # the program wrote a line and did not end it

    def __call__(self, event: SessionEvent) -> None:
        match event:
            case events.PhaseChanged(seconds=None, phase=phase, frame=frame):
                self._show(f"{phase} {frame}".strip())
            case events.SideStarted(side=side):
                self._show(f"side {side}")
            case events.OwnerStarted():
                self._show("whose error it is")
            case events.OwnerJudged():
                self._show("a script of it is tried")
            case events.OutputWritten(text=text):
                self._pass(text)
                self._open_line = not text.endswith("\n")
            case events.WorkerStarted(torch=version):
                self._show(f"torch {version}")
            case events.Noted(level="warning" | "error", text=text):
                self._end_line()
                self._pass(f"idbg: {text}\n")
            case events.RunEnded() | events.ReproEnded() | events.OwnerEnded():
                self._end_line()
                self.clear()
            case _:
                pass

    def clear(self) -> None:
        """Take the phase's line off the terminal."""
        if self._tty and self._shown:
            self._write("\r\x1b[K")
        self._shown = ""

    def _show(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            self._end_line()
            self._write(f"\r\x1b[K… {text}" if self._tty else f"… {text}\n")

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
