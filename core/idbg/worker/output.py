"""What did the program print, in pieces that a log can take?

The worker's stdout and stderr are read as they come and become `OutputWritten` events: a few a second however fast the
program prints, whole characters only, and no more of one run than a log can keep.
"""

import codecs
import time
from collections import deque
from typing import Literal

from idbg.events import Noted, OutputWritten

Stream = Literal["stdout", "stderr"]

FLUSH_SECONDS = 0.1  # two streams, ten times a second: 20 events a second at most
RUN_LIMIT = 1_000_000  # bytes of one run that the log keeps
PIECE_LIMIT = 65_536  # characters in one event
LAST_LIMIT = 4_000  # characters kept for the report of a worker's death
LAST_LINES = 20


def _decoders() -> dict[Stream, codecs.IncrementalDecoder]:
    make = codecs.getincrementaldecoder("utf-8")
    return {"stdout": make("replace"), "stderr": make("replace")}


class Output:
    """The two streams of one child. `run` says which run prints now; call `restart` when that changes."""

    def __init__(self) -> None:
        self.run = 0
        self._decoders = _decoders()
        self._waiting: dict[Stream, list[str]] = {}
        self._kept = self._dropped = 0
        self._due: float | None = None
        self._last: deque[str] = deque()
        self._last_size = 0

    def restart(self, run: int) -> None:
        """What comes from now on belongs to `run` (0 = between runs). Take what waits first."""
        self.run = run
        self._decoders = _decoders()
        self._kept = self._dropped = 0

    def feed(self, stream: Stream, data: bytes) -> None:
        self._remember(data)
        room = RUN_LIMIT - self._kept
        kept = data[: max(room, 0)]
        self._kept += len(kept)
        self._dropped += len(data) - len(kept)
        if kept:
            self._waiting.setdefault(stream, []).append(self._decoders[stream].decode(kept))
            if self._due is None:
                self._due = time.monotonic() + FLUSH_SECONDS

    def wait(self) -> float | None:
        """Seconds until there is something to take, or None if nothing waits."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def take(self) -> list[OutputWritten]:
        """All that waits, in order within each stream."""
        waiting, self._waiting, self._due = self._waiting, {}, None
        whole = {stream: "".join(texts) for stream, texts in waiting.items()}
        return [
            OutputWritten(run=self.run, stream=stream, text=text[start : start + PIECE_LIMIT])
            for stream, text in whole.items()
            for start in range(0, len(text), PIECE_LIMIT)
        ]

    def dropped(self) -> Noted | None:
        """A sentence about what the log does not have of this run, if there is such."""
        if not self._dropped:
            return None
        return Noted(
            level="warning",
            text=f"the program printed more than the {RUN_LIMIT / 1e6:.0f} MB that the log keeps of one run: "
            f"the last {self._dropped:,} bytes were dropped",
        )

    def last(self) -> str:
        """The last lines that were printed on either stream, in the order in which they were read."""
        text = "".join(self._last)[-LAST_LIMIT:]
        return "\n".join(text.splitlines()[-LAST_LINES:])

    def _remember(self, data: bytes) -> None:
        text = data[-LAST_LIMIT:].decode("utf-8", "replace")
        self._last.append(text)
        self._last_size += len(text)
        while self._last_size - len(self._last[0]) > LAST_LIMIT:
            self._last_size -= len(self._last.popleft())
