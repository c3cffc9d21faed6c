"""Which sessions lie in an output folder, and what does each come to?

Asked of the folder each time: each log's size and time of change say whether what was known of it is true still. What
was known lies in a file of the user's cache, which may be lost at any time: then each session's own `summary.json` is
read, and the log where that does not tell of all of it.
"""

import hashlib
import os
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.config import places
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import files, kept_summary
from idbg.session.files import LOG
from idbg.session.liveness import is_live

_FORMAT = 2  # 2: what was wrong stays a session's verdict


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """A session that nobody writes to any more, and what its log was when it was looked at."""

    inode: int
    size: int
    changed: int  # in nanoseconds
    summary: SessionSummary


class _Index(msgspec.Struct, frozen=True):
    format: int
    output: str
    sessions: dict[str, _Known]


def sessions(output: Path) -> list[SessionSummary]:
    """Every session that lies in the folder, the newest first; those that cannot be read say why (`damaged`).

    A folder that is not there has none. Raises OutputError where it cannot be read.
    """
    output = output.absolute()
    cache = _cache_of(output)
    before = _load(cache, output)
    now: dict[str, _Known] = {}
    found: list[SessionSummary] = []
    for name, status in _logs(output):
        known = before.get(name)
        if known is None or (known.inode, known.size, known.changed) != _mark(status):
            summary = _look(output / name, status)
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
    """Each folder (no link to one) that has a log with something in it, and the log's status."""
    found = []
    try:
        with os.scandir(output) as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                    continue
                try:
                    status = os.stat(f"{entry.path}/{LOG}", follow_symlinks=False)
                except OSError:  # none of ours, or it was removed just now
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


def _look(folder: Path, status: os.stat_result) -> SessionSummary | None:
    """What the session comes to; None where the log is none of ours."""
    live = is_live(folder)
    told = kept_summary.read(folder, None if live else status)
    if told is None:
        told = kept_summary.of_log(folder)
    return None if told is None else replace(told, live=live, ended=told.ended and not live)


def _cache_of(output: Path) -> Path:
    name = hashlib.sha256(os.fsencode(output)).hexdigest()[:16]
    return places.cache() / "sessions" / f"{name}.msgpack"


def _load(cache: Path, output: Path) -> dict[str, _Known]:
    """What is known, which is nothing where the file is not there, not whole or of another folder or version."""
    try:
        index = msgspec.msgpack.decode(cache.read_bytes(), type=_Index)
    except (OSError, ValueError, RecursionError):
        return {}
    return index.sessions if (index.format, index.output) == (_FORMAT, str(output)) else {}


def _save(cache: Path, index: _Index) -> None:
    try:
        files.write(cache, msgspec.msgpack.encode(index))
    except (OSError, ValueError):  # a cache that cannot be written, or a name that is not UTF-8: it is asked anew
        return
