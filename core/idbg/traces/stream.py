"""Split the bytes of a trace file into records, also while the file grows.

A record is a line "V1128 10:15:00.123456 4711 torch/_dynamo/convert_frame.py:123] {JSON}" and, below it, its payload,
of which each line begins with a tab. The JSON has the payload's MD5, by which a torn or interleaved one is found.
"""

import calendar
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from idbg.format.amounts import size

CHUNK = 1 << 20  # bytes that are read at once
RECORD_LIMIT = 32 << 20  # bytes of one record; the largest of a real trace so far has a twentieth of it
_HEADER = re.compile(rb"V(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,6})\d* (\d{1,10}) (.*?):(\d+)\] (\{.*)")
_NEXT = b"\nV"


class Record(NamedTuple):
    """One record. `clock` is the time of its line in seconds, in the unknown time zone of the job; `writer` is the
    source file that wrote it.
    """

    metadata: dict[str, object]
    payload: bytes
    clock: float
    pid: int
    writer: str

    @property
    def kind(self) -> str:
        """Torch's name of what it is."""
        return next(iter(self.metadata), "")

    @property
    def text(self) -> str:
        """The payload. Bytes that are no UTF-8 are replaced."""
        return self.payload.decode("utf-8", "replace")


class Readable(Protocol):
    """A file that is read in pieces."""

    def read(self, most: int, /) -> bytes:
        """The next bytes; none at its end for now."""


class RecordStream:
    """The records of one file, which may grow. What is left out is counted in `left_out`, by its reason."""

    def __init__(self, file: Readable, year: int, limit: int = RECORD_LIMIT) -> None:
        self._file, self._year, self._limit = file, year, limit
        self._rest = b""
        self._skipping = False  # within a record that is too long
        self._days: dict[bytes, int] = {}
        self.left_out: Counter[str] = Counter()
        self.changed = 0  # records of JSON that is not as torch wrote it
        self.read_bytes = 0

    def records(self, *, is_whole: bool) -> Iterator[Record]:
        """The records that are complete by now. `is_whole`: the file does not grow, and its last record ends here."""
        while chunk := self._file.read(CHUNK):
            self.read_bytes += len(chunk)
            yield from self._split(chunk)
        last = self._rest
        if last and not self._skipping and (is_whole or self._is_complete(last)):
            self._rest = b""
            yield from self._parsed(last)

    def _split(self, chunk: bytes) -> Iterator[Record]:
        begin, seen = 0, max(len(self._rest) - 1, 0)
        data = self._rest + chunk
        while (end := data.find(_NEXT, max(begin, seen))) >= 0:
            if self._skipping:
                self._skipping = False
            else:
                yield from self._parsed(data[begin : end + 1])
            begin = seen = end + 1
        self._rest = data[begin:]
        if self._skipping:
            self._rest = self._rest[-1:]
        elif len(self._rest) > self._limit:
            self._left_out(f"longer than the {size(self._limit)} that are read of one")
            self._skipping, self._rest = True, self._rest[-1:]

    def _is_complete(self, data: bytes) -> bool:
        """Whether a record at the end of a growing file is all there."""
        if not data.endswith(b"\n"):
            return False
        return isinstance(self._read(data), Record)

    def _parsed(self, data: bytes) -> Iterator[Record]:
        found = self._read(data)
        if isinstance(found, Record):
            yield found
        elif found:
            self._left_out(found)

    def _left_out(self, why: str) -> None:
        self.left_out[why] += 1

    def _read(self, data: bytes) -> Record | str:
        """The record, or why it is none; "" for nothing."""
        line, _, below = data.partition(b"\n")
        header = _HEADER.match(line)
        if header is None:
            return "not a line of torch's trace" if line.strip() else ""
        try:
            metadata = _json(header[10])
        except (ValueError, RecursionError):
            return "damaged, or cut off"
        if not isinstance(metadata, dict) or not metadata:
            return "damaged, or cut off"
        payload = b""
        if (expected := metadata.get("has_payload")) is not None:
            intact = next((each for each in _payloads(below) if _is_intact(each, expected)), None)
            if intact is None and (intact := next(filter(_is_json, _payloads(below)), None)) is not None:
                self.changed += 1
            if intact is None:
                return "cut off, changed, or mixed with the output of another process"
            payload = intact
        return Record(metadata, payload, self._clock(header), int(header[7]), header[8].decode("utf-8", "replace"))

    def _clock(self, header: re.Match[bytes]) -> float:
        month, day, hour, minute, second, fraction = header.group(1, 2, 3, 4, 5, 6)
        if (date := month + day) not in self._days:
            try:
                begun = time.strptime(f"{self._year}{date.decode()}", "%Y%m%d")
                self._days[date] = calendar.timegm(begun)
            except ValueError:  # no day of this year
                self._days[date] = 0
        in_day = int(hour) * 3600 + int(minute) * 60 + int(second) + int(fraction.ljust(6, b"0")) / 1e6
        return self._days[date] + in_day


def _json(line: bytes) -> object:
    try:
        return msgspec.json.decode(line)
    except ValueError:
        return json.loads(line.decode("utf-8", "replace"))  # NaN, and bytes that are no UTF-8


def _payloads(below: bytes) -> Iterator[bytes]:
    """What the payload can be: all lines, those that are of it, and the same where each line ends with CR LF."""
    yield _unindented(below)
    yield _unindented(b"\n".join(line for line in below.split(b"\n") if line.startswith(b"\t")))
    if b"\r\n" in below:
        yield from _payloads(below.replace(b"\r\n", b"\n"))


def _is_intact(payload: bytes, expected: object) -> bool:
    return hashlib.md5(payload, usedforsecurity=False).hexdigest() == expected


def _is_json(payload: bytes) -> bool:
    """Whether it is all of an object or a list: one that is cut off is none."""
    try:
        return payload[:1] in (b"{", b"[") and isinstance(_json(payload), dict | list)
    except (ValueError, RecursionError):
        return False


def _unindented(below: bytes) -> bytes:
    """A payload, whose lines begin with a tab each; other lines are none of it."""
    if below.endswith(b"\n"):
        below = below[:-1]
    if below.startswith(b"\t"):
        below = below[1:].replace(b"\n\t", b"\n")
    return below


def is_trace(head: bytes) -> bool:
    """Whether a file that begins so is one of torch's traces."""
    return _HEADER.match(head.partition(b"\n")[0]) is not None
