"""List the sessions of an output folder with their summaries, and find one by its name.

A cache file holds the summaries; a changed size or time of a log invalidates its entry. Without a cache entry the
session's own `summary.json` is read, and its log if that summary is out of date.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from idbg.config import places
from idbg.format.spelling import did_you_mean
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import files, processes, summaries
from idbg.session.files import LOG, is_session

LAST = "last"
_FORMAT = 4  # 2: what was wrong stays a session's verdict; 3: "compiled"; 4: the verdicts of processes


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """The summary of a session that is not live, and the status of the log that it was made from."""

    inode: int
    size: int
    changed: int  # in nanoseconds
    summary: SessionSummary


class _Index(msgspec.Struct, frozen=True):
    format: int
    output: str
    sessions: dict[str, _Known]


def sessions(output: Path) -> list[SessionSummary]:
    """The sessions in the folder, newest first; `damaged` says why one cannot be read.

    A missing folder has none. Raises OutputError if the folder cannot be read.
    """
    output = output.absolute()
    cache = _cache_of(output)
    before = _load(cache, output)
    now: dict[str, _Known] = {}
    found: list[SessionSummary] = []
    for name, status in _logs(output):
        known = before.get(name)
        if known is None or (known.inode, known.size, known.changed) != _mark(status):
            summary = summaries.current(output / name)
            if summary is None:
                continue
            known = _Known(*_mark(status), summary)
        if not known.summary.live:
            now[name] = known
        found.append(known.summary)
    if now != before:
        _save(cache, _Index(_FORMAT, str(output), now))
    return sorted(found, key=lambda each: (each.started, each.name), reverse=True)


def _logs(output: Path) -> list[tuple[str, os.stat_result]]:
    """The folders (links excluded) with a log that is not empty, and the log's status."""
    found = []
    try:
        with os.scandir(output) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                    continue
                try:
                    status = os.stat(f"{entry.path}/{LOG}", follow_symlinks=False)
                except OSError:  # not a session, or removed meanwhile
                    continue
                if status.st_size:
                    found.append((entry.name, status))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(
            f"cannot read the output folder {output}: {error.strerror or error}",
            hint="name another with --output FOLDER (or IDBG_OUTPUT)",
        ) from error
    return found


def _mark(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_ctime_ns


def _cache_of(output: Path) -> Path:
    name = hashlib.sha256(os.fsencode(output)).hexdigest()[:16]
    return places.cache() / "sessions" / f"{name}.msgpack"


def _load(cache: Path, output: Path) -> dict[str, _Known]:
    """The cached sessions; none if the file is missing, damaged, or of another folder or version."""
    try:
        index = msgspec.msgpack.decode(cache.read_bytes(), type=_Index)
    except (OSError, ValueError, RecursionError):
        return {}
    return index.sessions if (index.format, index.output) == (_FORMAT, str(output)) else {}


def _save(cache: Path, index: _Index) -> None:
    try:
        files.write(cache, msgspec.msgpack.encode(index))
    except (OSError, ValueError):  # not writable, or a name that is not UTF-8: the next list reads summaries again
        return


def find(text: str, output: Path) -> Path:
    """The folder of the session that `text` names: a path to it or to its log, its name in the folder `output`, or
    "last" for the newest there; with /NAME that of a process of it. Raises OutputError, whose hint names sessions that
    exist, if there is none.
    """
    found = named(text, output)
    if found is not None:
        return found
    head, _, tail = text.rpartition("/")
    if head and processes.is_name(tail) and (session := named(head, output)) is not None:
        known = ", ".join(processes.names(session)[:20])
        raise OutputError(
            f"the session {session.name} has no process {tail}",
            hint=f"it has {known}" if known else "it has one process: leave its name out",
        )
    given = places.expanded(text)
    if text == LAST:
        raise OutputError(f"there is no session in {output}", hint="idbg run FILE.py makes one; --output names others")
    if not text:
        raise OutputError("no session is named", hint=_there(text, output))
    if given.is_dir():
        raise OutputError(f"{given} is not a session: it has no {LOG}", hint=_there(text, output))
    raise OutputError(f"there is no session {text}", hint=_there(text, output))


def named(text: str, output: Path) -> Path | None:
    """Like `find`; None if no session has that name: it may be a program's."""
    if text == LAST:
        newest = next(iter(sessions(output)), None)
        return Path(newest.folder) if newest else None
    if not text:
        return None
    given = places.expanded(text)
    if is_session(given):
        return given
    if given.name == LOG and is_session(given.parent):
        return given.parent
    if Path(text).name == text and is_session(output / text):
        return output / text
    head, _, tail = text.rpartition("/")
    session = named(head, output) if head and processes.is_name(tail) else None
    return processes.find(session, tail) if session is not None else None


def _there(text: str, output: Path) -> str:
    names = [each.name for each in sessions(output)]
    there = f"idbg list names those in {output}" if names else f"there is none in {output} either"
    return did_you_mean(Path(text).name, names, there)
