"""What did a session say of itself when it was last whole, and what does its log say where it did not?"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from idbg.schema import strict_json
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import files

if TYPE_CHECKING:
    from idbg.schema.runs import History

NAME = "summary.json"
_MOST = 64 << 10  # bytes
_FORMAT = 2  # 2: what was wrong stays a session's verdict


class _Kept(msgspec.Struct, frozen=True):
    log_bytes: int
    summary: SessionSummary
    format: int = 1


def write(folder: Path, summary: SessionSummary, log_bytes: int) -> None:
    """Keep in the session's folder what it has come to with so many bytes of log. Raises OSError."""
    data = strict_json.formatted(_Kept(log_bytes, summary, _FORMAT), indent=1)
    if len(data) <= _MOST:
        files.write(folder / NAME, data + b"\n")


def read(folder: Path, log: os.stat_result | None) -> SessionSummary | None:
    """What the session has come to, as it was written down in its folder, which may have been moved since.

    None where there is nothing, or where that is of an older idbg or not of the log as it is; `log` None: it goes on,
    whatever it is now.
    """
    try:
        kept = msgspec.json.decode(files.read(folder / NAME, 2 * _MOST), type=_Kept)
        written = os.stat(folder / NAME, follow_symlinks=False).st_mtime_ns
    except (OSError, ValueError, RecursionError):
        return None
    if kept.format != _FORMAT:
        return None
    if log is not None and (kept.log_bytes != log.st_size or written < log.st_mtime_ns):
        return None
    return replace(kept.summary, folder=str(folder), name=folder.name)


def of_log(folder: Path) -> SessionSummary | None:
    """What the session's log comes to; None where it is none of ours."""
    # late: what a list mostly needs is written down, and what reads logs takes longer to import than all of that
    from idbg.session import reading
    from idbg.session.summarizing import bytes_within

    try:
        return read_whole(folder)[0]
    except reading.NotASession:
        return None
    except OutputError as error:
        return SessionSummary(folder=str(folder), name=folder.name, damaged=error.message, bytes=bytes_within(folder))


def read_whole(folder: Path) -> "tuple[SessionSummary, History]":
    """What the session comes to, and all of it, from its log as it is now. Raises OutputError as `reading.read`."""
    from idbg.schema.runs import fold
    from idbg.session import reading
    from idbg.session.liveness import is_live
    from idbg.session.summarizing import bytes_within, summary

    found, missing = reading.read(folder)
    history = fold(found)
    if missing:
        history.missing.insert(0, missing)
    told = summary(folder, reading.opening(found), history, found[-1].at)
    live = is_live(folder)
    return replace(told, bytes=bytes_within(folder), live=live, ended=told.ended and not live), history
