"""Turn the program's output into events of a size that a log can take.

The worker's stdout and stderr are read as they come and become `OutputWritten` events: before each other event, and
else a few a second however fast the program prints, whole characters only, and no more of one run than a log can keep:
its beginning and its end.
"""

import codecs
import time
from collections import deque
from typing import Literal

from idbg.schema.events import Noted, OutputWritten

Stream = Literal["stdout", "stderr"]

FLUSH_SECONDS = 0.1  # two streams, ten times a second: 20 events a second at most
HEAD_LIMIT = 500_000  # bytes of one run that are passed on as they come
TAIL_LIMIT = 500_000  # bytes that are held back after them, to be passed on when the run has ended
PIECE_LIMIT = 65_536  # characters in one event
LAST_LIMIT = 4_000  # characters kept for the report of a worker's death
LAST_LINES = 20
_CONTINUED = bytes(range(0x80, 0xC0))  # a character that was cut in two begins with one of these


def _decoders() -> dict[Stream, codecs.IncrementalDecoder]:
    make = codecs.getincrementaldecoder("utf-8")
    return {"stdout": make("replace"), "stderr": make("replace")}


class ChildOutput:
    """The two streams of one child. `run` says which run prints now; call `restart` when that changes."""

    def __init__(self) -> None:
        self.run = 0
        self._decoders = _decoders()
        self._waiting: dict[Stream, list[str]] = {}
        self._due: float | None = None
        self._kept = self._dropped = 0
        self._tail: deque[tuple[Stream, bytes]] = deque()
        self._tail_size = 0
        self._last: deque[str] = deque()
        self._last_size = 0

    def restart(self, run: int) -> None:
        """Later output belongs to `run` (0: between runs). Call `take` and `rest` first."""
        self.run = run
        self._decoders = _decoders()
        self._kept = self._dropped = self._tail_size = 0
        self._tail.clear()

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take bytes that were read from a stream; they may end within a character."""
        self._remember(data)
        room = HEAD_LIMIT - self._kept
        kept, held = data[:room], data[room:]
        self._kept += len(kept)
        if kept:
            self._waiting.setdefault(stream, []).append(self._decoders[stream].decode(kept))
            if self._due is None:
                self._due = time.monotonic() + FLUSH_SECONDS
        if held:
            self._hold(stream, held)

    def wait(self) -> float | None:
        """Seconds until there is something to take, or None if nothing waits."""
        return None if self._due is None else max(self._due - time.monotonic(), 0.0)

    def take(self) -> list[OutputWritten]:
        """All that waits, in order within each stream."""
        waiting, self._waiting, self._due = self._waiting, {}, None
        return self._written({stream: "".join(texts) for stream, texts in waiting.items()})

    def rest(self) -> list[Noted | OutputWritten]:
        """The output of an ended run that was held back, after a note about the part that was dropped."""
        streams: dict[Stream, bytearray] = {}
        for stream, data in self._tail:
            streams.setdefault(stream, bytearray()).extend(data)
        self._tail.clear()
        self._tail_size = 0
        written = self._written({stream: self._decoded(stream, bytes(data)) for stream, data in streams.items()})
        dropped, self._dropped = self._dropped, 0
        if not dropped:
            return [*written]
        kept = (HEAD_LIMIT + TAIL_LIMIT) / 1e6
        text = f"the program printed more than the {kept:.0f} MB that the log keeps of one run: "
        text += f"{dropped:,} bytes in its middle were dropped"
        return [Noted(level="warning", text=text), *written]

    def last(self) -> str:
        """The last lines that were printed on either stream, in the order in which they were read."""
        text = "".join(self._last)[-LAST_LIMIT:]
        return "\n".join(text.splitlines()[-LAST_LINES:])

    def _written(self, texts: dict[Stream, str]) -> list[OutputWritten]:
        return [
            OutputWritten(run=self.run, stream=stream, text=text[start : start + PIECE_LIMIT])
            for stream, text in texts.items()
            for start in range(0, len(text), PIECE_LIMIT)
        ]

    def _decoded(self, stream: Stream, data: bytes) -> str:
        """The text of what was held back; it goes on where the beginning stopped, unless something was dropped."""
        if self._dropped:
            return data.lstrip(_CONTINUED).decode("utf-8", "replace")
        return self._decoders[stream].decode(data)

    def _hold(self, stream: Stream, data: bytes) -> None:
        self._tail.append((stream, data))
        self._tail_size += len(data)
        while self._tail_size > TAIL_LIMIT:
            stream, oldest = self._tail.popleft()
            excess = min(self._tail_size - TAIL_LIMIT, len(oldest))
            self._dropped += excess
            self._tail_size -= excess
            if excess < len(oldest):
                self._tail.appendleft((stream, oldest[excess:]))

    def _remember(self, data: bytes) -> None:
        text = data[-LAST_LIMIT:].decode("utf-8", "replace")
        self._last.append(text)
        self._last_size += len(text)
        while self._last_size - len(self._last[0]) > LAST_LIMIT:
            self._last_size -= len(self._last.popleft())
