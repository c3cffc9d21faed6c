"""Read the trace file of one process, also while it grows."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from idbg.format.amounts import counted
from idbg.traces.debug_folder import scheduler_dumps
from idbg.traces.imported import FileReader
from idbg.traces.packed import PackedFile
from idbg.traces.process import Emit, Opening, ProcessLog
from idbg.traces.records import LATEST, number
from idbg.traces.sources import opened
from idbg.traces.stream import Record, RecordStream

BACK = 2.0  # seconds: a clock that goes back further was set


class Clock:
    """The time of records since the epoch. Their lines have local time without a year; spans have both."""

    def __init__(self) -> None:
        self._shift: float | None = None
        self._is_exact = False
        self._last = 0.0
        self.went_back = 0.0  # seconds, at most

    def at(self, record: Record) -> float:
        """When a record was written."""
        if not self._is_exact and record.kind == "chromium_event" and (stamp := _stamp(record)) is not None:
            self._shift, self._is_exact, self._last = stamp - record.clock, True, 0.0
        if self._shift is None:
            self._shift = time.mktime(time.gmtime(record.clock)) - record.clock
        at = record.clock + self._shift
        self.went_back = max(self.went_back, self._last - at)
        self._last = max(self._last, at)
        return at


class TraceFile:
    """The trace of one process on its way into a log. `dumps`: the folder in which Inductor dumped its graphs beside
    the trace. Raises OSError for a file that cannot be read.
    """

    def __init__(self, file: Path, opening: Opening, write: Emit, dumps: Path | None = None) -> None:
        self.file, self._dumps = file, dumps
        self._log = ProcessLog(opening, write)
        self._opened = opened(file)
        self._stream = RecordStream(self._opened, time.localtime(file.stat().st_mtime).tm_year)
        self._reader = FileReader(self._log.run)
        self._clock = Clock()
        self._pids: Counter[int] = Counter()
        self._odd = 0  # records of an unknown form

    @property
    def read_bytes(self) -> int:
        """Bytes of the file that were read."""
        return self._opened.packed_bytes if isinstance(self._opened, PackedFile) else self._stream.read_bytes

    @property
    def last_phase(self) -> str:
        """What it compiled at the end of its trace; "" where nothing."""
        return self._log.run.open_phase

    def steps(self, *, is_whole: bool) -> Iterator[int]:
        """Read what came since the last time. Yields the bytes so far, from time to time."""
        before = self._stream.read_bytes
        for record in self._stream.records(is_whole=is_whole):
            self._take(record)
            if self._stream.read_bytes != before:
                before = self._stream.read_bytes
                yield self.read_bytes
        if self._stream.read_bytes != before:
            yield self.read_bytes

    def _take(self, record: Record) -> None:
        self._pids[record.pid] += 1
        self._log.begin(self._clock.at(record))
        if not self._reader.record(record):
            self._odd += 1
        if self._reader.torch:
            self._log.torch_found(self._reader.torch, record.pid)
            self._reader.torch = ""

    def end(self) -> None:
        """The trace is over: end the run, and say what was left out. A log without a record gets its beginning."""
        run = self._log.run
        for graph, stage in scheduler_dumps(self._dumps) if self._dumps is not None else ():
            if (frame := run.frame_of_graph.get(graph)) is not None:
                run.stages.add("inductor", stage._replace(frame=frame), "dump", of_author=False)
        self._log.end(list(self._missing()))
        self._opened.close()

    def _missing(self) -> Iterator[str]:
        name = self.file.name
        if isinstance(self._opened, PackedFile) and self._opened.damage:
            yield f"{name} {self._opened.damage}: the rest is left out"
        for why, count in self._stream.left_out.items():
            yield f"{counted(count, 'record')} of {name} left out: {why}"
        if self._stream.changed:
            what = counted(self._stream.changed, "record")
            yield f"{what} of {name} changed since torch wrote the file, and read as it is now"
        if self._odd:
            yield f"{counted(self._odd, 'record')} of {name} left out: of an unknown form, maybe of a newer torch"
        if self._clock.went_back > BACK:
            yield f"the clock of {name} goes back by {self._clock.went_back:,.0f} s: times may be wrong"
        if len(self._pids) > 1:
            others = ", ".join(str(pid) for pid, _ in self._pids.most_common()[1:6])
            yield f"{name} has records of several processes ({others} beside the first), which are shown as one"


def _stamp(record: Record) -> float | None:
    """When the span of this record began or ended."""
    try:
        event = msgspec.json.decode(record.payload)
    except (ValueError, RecursionError):
        return None
    stamp = number(event.get("ts")) if isinstance(event, dict) else None
    return stamp / 1e6 if stamp is not None and 0 < stamp < LATEST else None
