"""What stands in a session's log, however it was cut off or damaged, and whoever wrote it?

The log opens up to the first line that is not whole, with a sentence of what is left out: what follows a gap is not
told, for a run without its violations would look clean. A log may come from anybody, so it is read from a regular file
alone (a pipe would be waited for), a line at a time, and never more of it than memory can take.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from idbg.format.amounts import size
from idbg.format.plain_text import one_line
from idbg.schema import event_log
from idbg.schema.errors import OutputError
from idbg.schema.events import FORMAT, Noted, SessionEvent, SessionOpened
from idbg.session import files
from idbg.session.bounds import impossible
from idbg.session.files import LOG

LINE_LIMIT = 128 << 20
"""Bytes: the largest line of real sessions so far is a fiftieth of it."""
CHUNK = 1 << 20


class NotASession(OutputError):
    """The folder has no log that a session wrote."""


class Reading(NamedTuple):
    """What a session's log holds. `missing` says in a sentence what of it could not be read, "" where all could."""

    events: list[SessionEvent]
    missing: str


def read(folder: Path) -> Reading:
    """The events of a saved session, up to the first that is not whole.

    Raises OutputError if this is not a session's folder, it cannot be read, or its log is of a newer format.
    """
    with opened_log(folder) as log:
        try:
            return _read(folder, log)
        except OSError as error:
            raise OutputError(
                f"cannot read the session {folder}: {error.strerror or error}", hint="check its permissions"
            ) from error


def opening(found: list[SessionEvent]) -> SessionOpened:
    """How it began: what `read` gives has such an event."""
    return next(event for event in found if isinstance(event, SessionOpened))


def load(folder: Path) -> list[SessionEvent]:
    """The events of a saved session, and at their end a note of what of it cannot be read. Raises as `read` does."""
    found, missing = read(folder)
    return [*found, Noted(level="warning", text=missing, missing=True)] if missing else found


def opened_log(folder: Path) -> BinaryIO:
    """The session's log, open for reading. Raises OutputError where there is none that can be read."""
    try:
        return os.fdopen(files.opened(folder / LOG), "rb", buffering=CHUNK)
    except files.NotRegular as error:
        raise _no_session(folder, f"its {LOG} is no regular file") from error
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a name with a NUL
        raise _no_session(folder, f"it has no {LOG}") from error
    except OSError as error:
        if (folder / LOG).is_symlink():
            raise _no_session(folder, f"its {LOG} is a link") from error
        raise OutputError(
            f"cannot read the session {folder}: {error.strerror or error}", hint="check its permissions"
        ) from error


def _read(folder: Path, log: BinaryIO) -> Reading:
    limit = most_bytes()
    found: list[SessionEvent] = []
    begins = 0  # where the line does
    for number, line in enumerate(_lines(log), 1):
        if number == 1:
            _check_format(folder, line)
        try:
            event = _event(number, line, room=limit - begins)
        except _Unreadable as error:
            if not found:
                raise OutputError(
                    f"the session {folder} is damaged where it begins: {error}",
                    hint="there is nothing to be read of it",
                ) from error
            if _is_torn(log, line):
                break
            return Reading(found, _left_out(log, str(error), begins))
        begins += len(line)
        if event is not None:
            found.append(event)
    if not found:
        raise _no_session(folder, f"its {LOG} is empty")
    return Reading(found, "")


def most_bytes() -> int:
    """So much of a log is read at most: its events take several times that in memory."""
    return max(256 << 20, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16)


class _Unreadable(Exception):
    """Why a line is no event, as a clause."""


def _lines(log: BinaryIO) -> Iterator[bytes]:
    """The lines with their ends, the first LINE_LIMIT + 1 bytes of one that is longer."""
    while line := log.readline(LINE_LIMIT + 1):
        yield line


def _event(number: int, line: bytes, *, room: int) -> SessionEvent | None:
    """The event on this line; None where there is none, or of a kind that this version does not know."""
    if len(line) > LINE_LIMIT:
        raise _Unreadable(f"line {number} is longer than {size(LINE_LIMIT)}")
    if len(line) > room:
        raise _Unreadable("it is longer than what is read at once")
    if not line.strip():
        return None
    try:
        event = event_log.decode(line)
    except RecursionError as error:
        raise _Unreadable(f"line {number} is nested too deep") from error
    except ValueError as error:  # msgspec's are, and UnicodeDecodeError
        raise _Unreadable(f"line {number} is damaged: {one_line(str(error), 160)}") from error
    if event is not None and (why := impossible(event)):
        raise _Unreadable(f"line {number} says what cannot be: {why}")
    return event


def _is_torn(log: BinaryIO, line: bytes) -> bool:
    """Whether the line is the last one, and its writer did not come to its end: killed, or without power, which leaves
    zeros behind.
    """
    return not line.endswith(b"\n") and len(line) <= LINE_LIMIT and not log.read(1)


def _left_out(log: BinaryIO, why: str, whole: int) -> str:
    total = os.fstat(log.fileno()).st_size
    return (
        f"the session's log is not whole: {why}; the last {size(max(0, total - whole))} of {size(total)} are left out"
    )


class _Opening(msgspec.Struct):
    type: str
    version: str = ""
    format: int = 0


def is_opening(log: BinaryIO) -> bool:
    """Whether the first line of the log is that of a session: of this version or another, or damaged behind it."""
    return _opening(log.readline(LINE_LIMIT + 1)) is not None


def _opening(line: bytes) -> _Opening | None:
    try:
        opening = msgspec.json.decode(line, type=_Opening)
    except (ValueError, RecursionError):
        return None
    return opening if opening.type == "session_opened" else None


def _check_format(folder: Path, line: bytes) -> None:
    opening = _opening(line)
    if opening is None:
        raise _no_session(folder, f"its {LOG} does not begin with session_opened")
    if opening.format > FORMAT:
        version = one_line(opening.version, 160)
        raise OutputError(
            f"the session {folder} was written by a newer idbg ({version}, log format {opening.format})",
            hint=f"this one reads format {FORMAT}: pip install --upgrade idbg",
        )


def _no_session(folder: Path, why: str) -> NotASession:
    return NotASession(
        f"{folder} is not a session: {why}", hint="idbg list names those that there are; idbg show last has the newest"
    )
