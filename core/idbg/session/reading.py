"""Read a session's log, also one that is truncated, damaged or hostile.

Events are read up to the first damaged line; a sentence says what is left out. Nothing after a gap is used: a run
without its violations would look clean. Only regular files are read, a line at a time, up to a limit in bytes.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from idbg.format.amounts import size
from idbg.format.plain_text import one_line
from idbg.schema import event_log, events
from idbg.schema.errors import OutputError, output_errors
from idbg.schema.events import FORMAT, Noted, SessionEvent, SessionOpened
from idbg.schema.graphs import Graph, Node, TensorMeta
from idbg.session import files
from idbg.session.deferred import LogPlaces
from idbg.session.files import LOG

LINE_LIMIT = 128 << 20
"""Bytes of a line; the largest line of a real session so far has a fiftieth of it."""
CHUNK = 1 << 20
_MOST_ELEMENTS = 1 << 63  # torch counts elements in 64 bits


class NotASession(OutputError):
    """The folder has no event log of a session."""


class Reading(NamedTuple):
    """The events of a log. `missing` is a sentence about what could not be read; "" if all was read."""

    events: list[SessionEvent]
    missing: str


def read(folder: Path) -> Reading:
    """The events of a saved session, up to the first damaged line.

    Raises OutputError if the folder is not a session, cannot be read, or has a log of a newer format.
    """
    with opened_log(folder) as log, output_errors(f"cannot read the session {folder}", "check its permissions"):
        return _read(folder, log)


def opening(found: list[SessionEvent]) -> SessionOpened:
    """The first SessionOpened; every result of `read` has one."""
    return next(event for event in found if isinstance(event, SessionOpened))


def load(folder: Path) -> list[SessionEvent]:
    """The events of a saved session; a note at the end says what could not be read. Raises like `read`."""
    found, missing = read(folder)
    return [*found, Noted(level="warning", text=missing, missing=True)] if missing else found


def opened_log(folder: Path) -> BinaryIO:
    """Open the session's log for reading. Raises OutputError."""
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
    places = LogPlaces(log.fileno())
    begins = 0  # offset of the line
    for number, line in enumerate(_lines(log), 1):
        if number == 1:
            _check_format(folder, line)
        try:
            event = event_on(number, line, room=limit - places.held)
        except Unreadable as error:
            if not found:
                raise OutputError(
                    f"the session {folder} is damaged where it begins: {error}",
                    hint="there is nothing to be read of it",
                ) from error
            if _is_torn(log, line):
                break
            return Reading(found, _left_out(log, str(error), begins))
        if event is not None:
            found.append(places.taken(event, begins, len(line)))
        begins += len(line)
    if not found:
        raise _no_session(folder, f"its {LOG} is empty")
    return Reading(found, "")


def most_bytes() -> int:
    """The most bytes of a log that are held in memory: decoded events take several times that (see `deferred`)."""
    return max(256 << 20, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16)


class Unreadable(Exception):
    """Why a line cannot be decoded, as a clause."""


def _lines(log: BinaryIO) -> Iterator[bytes]:
    """The lines with their newlines, each cut after LINE_LIMIT + 1 bytes."""
    while line := log.readline(LINE_LIMIT + 1):
        yield line


def event_on(number: int, line: bytes, *, room: int) -> SessionEvent | None:
    """The event on this line; None for an empty line and for an event type that this version does not know.

    Raises Unreadable.
    """
    if len(line) > LINE_LIMIT:
        raise Unreadable(f"line {number} is longer than {size(LINE_LIMIT)}")
    if len(line) > room:
        raise Unreadable("it is longer than what is read at once")
    if line.isspace():
        return None
    try:
        event = event_log.decode(line)
    except RecursionError as error:
        raise Unreadable(f"line {number} is nested too deep") from error
    except ValueError as error:  # msgspec's are, and UnicodeDecodeError
        raise Unreadable(f"line {number} is damaged: {one_line(str(error), 160)}") from error
    if event is not None and (why := impossible(event)):
        raise Unreadable(f"line {number} says what cannot be: {why}")
    return event


def _is_torn(log: BinaryIO, line: bytes) -> bool:
    """Whether this is the last line, and its writer was interrupted (killed, or a power loss, which leaves zeros)."""
    return not line.endswith(b"\n") and len(line) <= LINE_LIMIT and not log.read(1)


def can_be_read(line: bytes) -> bool:
    """Whether a reader takes this line of a log for what it is: values of a trace may be of any size and kind."""
    try:
        return event_on(1, line, room=LINE_LIMIT) is not None
    except Unreadable:
        return False


def _left_out(log: BinaryIO, why: str, whole: int) -> str:
    total = os.fstat(log.fileno()).st_size
    return (
        f"the session's log is not whole: {why}; the last {size(max(0, total - whole))} of {size(total)} are left out"
    )


class _Opening(msgspec.Struct):
    type: str
    version: str = ""
    format: int = 0


def first_event(log: BinaryIO) -> SessionEvent | None:
    """The event on the log's first line; None where that is not whole, or damaged."""
    line = log.readline(LINE_LIMIT + 1)
    try:
        return event_on(1, line, room=LINE_LIMIT) if line.endswith(b"\n") else None
    except Unreadable:
        return None


def is_opening(log: BinaryIO) -> bool:
    """Whether the log begins with a session's first line, of whatever version."""
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


def impossible(event: SessionEvent) -> str:
    """Why an event's values contradict each other, as the end of a sentence; "" if they do not.

    Single values are bounded by their types (`idbg.schema.graphs`).
    """
    if not isinstance(event, events.GraphCaptured):
        return ""
    graph = event.graph
    if any(not -_MOST_ELEMENTS < (tensor.numel or 0) < _MOST_ELEMENTS for tensor in _tensors(graph)):
        return f"a tensor of the {graph.id} graph has 2**63 elements or more"
    stored = (node for node in graph.nodes if node.storages or node.storage_bytes)
    unlike = next((node for node in stored if not _agree(node)), None)
    if unlike is not None:
        return f"the node {unlike.name!r} of the {graph.id} graph has not one storage for each of its tensors"
    return ""


def _tensors(graph: Graph) -> set[TensorMeta]:
    return {tensor for node in graph.nodes for tensor in node.tensors}


def _agree(node: Node) -> bool:
    storages, sizes = len(node.storages), len(node.storage_bytes)
    return storages in (0, len(node.tensors)) and sizes in (0, storages)
