"""Summarize a session in one line of a list, and keep that summary in its folder.

A list mostly reads kept summaries; what reads logs takes longer to import than all of that, so it is imported late.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from idbg.config import places
from idbg.schema import strict_json
from idbg.schema.errors import OutputError
from idbg.schema.summaries import SessionSummary
from idbg.session import files

if TYPE_CHECKING:
    from idbg.schema.events import SessionOpened
    from idbg.schema.runs import History

NAME = "summary.json"
KEY = "summaries.key"
_MOST = 64 << 10  # bytes
_KEY_BYTES = 32
_FORMAT = 5  # 2: what was wrong stays a session's verdict; 3: "compiled"; 4: a benchmark without a run; 5: sealed


class _Kept(msgspec.Struct, frozen=True):
    """`seal` is a keyed digest of the rest: where another user wrote it, or it was edited, the log is read instead."""

    log_bytes: int
    summary: SessionSummary
    format: int = 1
    seal: str = ""


def _sealed(kept: _Kept, key: bytes) -> _Kept:
    text = strict_json.encode(replace(kept, seal=""))
    return replace(kept, seal=hashlib.blake2b(text, key=key, digest_size=16).hexdigest())


def _key() -> bytes:
    """This user's key; it is created where there is none. Raises OSError."""
    path = places.cache() / KEY
    with contextlib.suppress(FileNotFoundError):
        return files.read(path, _KEY_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{KEY}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(_KEY_BYTES))
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.link(part, path)
    part.unlink()
    return files.read(path, _KEY_BYTES)


def write(folder: Path, summary: SessionSummary, log_bytes: int) -> None:
    """Write the summary into the session's folder; it covers the first `log_bytes` of the log. Raises OSError."""
    data = strict_json.formatted(_sealed(_Kept(log_bytes, summary, _FORMAT), _key()), indent=1)
    if len(data) <= _MOST:
        files.write(folder / NAME, data + b"\n")


def read(folder: Path, log: os.stat_result | None) -> SessionSummary | None:
    """The summary that was kept in the folder, which may have been moved since.

    None if there is none, another user or an older idbg wrote it, it was edited, or it does not cover the `log` (its
    status; None: do not compare, the session is live).
    """
    try:
        kept = msgspec.json.decode(files.read(folder / NAME, 2 * _MOST), type=_Kept)
        written = os.stat(folder / NAME, follow_symlinks=False).st_mtime_ns
        if kept.format != _FORMAT or _sealed(kept, _key()).seal != kept.seal:
            return None
    except (OSError, ValueError, RecursionError):
        return None
    if log is not None and (kept.log_bytes != log.st_size or written < log.st_mtime_ns):
        return None
    return replace(kept.summary, folder=str(folder), name=folder.name)


def current(folder: Path) -> SessionSummary | None:
    """The session's summary as it is now: kept, or made from its log; None if that is not one of a session."""
    live = files.is_live(folder)
    try:
        status = os.stat(folder / files.LOG, follow_symlinks=False)
    except OSError:
        return None
    found = read(folder, None if live else status) or of_log(folder)
    return None if found is None else replace(found, live=live, ended=found.ended and not live)


def of_log(folder: Path) -> SessionSummary | None:
    """The summary of the session's log; None if the log is not one of a session."""
    from idbg.session import reading

    try:
        return read_whole(folder)[0]
    except reading.NotASession:
        return None
    except OutputError as error:
        return SessionSummary(folder=str(folder), name=folder.name, damaged=error.message, bytes=bytes_within(folder))


def read_whole(folder: Path) -> "tuple[SessionSummary, History]":
    """The summary and the whole history, from the log as it is now. Raises OutputError as `reading.read`."""
    from idbg.schema.runs import fold
    from idbg.session import reading

    found, missing = reading.read(folder)
    history = fold(found)
    if missing:
        history.missing.insert(0, missing)
    add_outcomes(folder, history)
    whole = summary(folder, reading.opening(found), history, found[-1].at)
    live = files.is_live(folder)
    return replace(whole, bytes=bytes_within(folder), live=live, ended=whole.ended and not live), history


def add_outcomes(folder: Path, history: "History") -> None:
    """Add what came of the session's processes, where its log does not have it: it was cut off, or is older."""
    from idbg.format.verdicts import process_outcome
    from idbg.session import processes

    for each in processes.reports(folder, history.processes):
        if not each.said and (own := current(folder / processes.FOLDER / each.name)) is not None:
            verdict, said = process_outcome(each.ended, own.verdict, own.result)
            history.take_process(replace(each, verdict=verdict, said=said))


def summary(folder: Path, opened: "SessionOpened", history: "History", last: float) -> SessionSummary:
    """The summary of a history; `last` is the time of its last event, in seconds since the epoch.

    The caller sets `bytes` and `live`.
    """
    from idbg.format.verdicts import session_words

    facts = SessionSummary(
        folder=str(folder),
        name=folder.name,
        program=opened.program.label,
        version=opened.version,
        started=opened.at,
        seconds=max(0.0, last - opened.at),
        ended=not history.missing and all(run.ended is not None for run in history.runs.values()),
        runs=len(history.runs),
        processes=len(history.processes),
        verdict=history.verdict,
        looks=history.looks,
        result=session_words(history),
        damaged=history.missing[0] if history.missing else "",
    )
    run = history.last
    if run is None:
        return facts
    return replace(
        facts,
        program=run.program.label,
        seconds=run.seconds if opened.source else facts.seconds,
        backend=run.backend,
        accelerator=run.target.accelerator,
        device=run.target.device,
        graphs=len(run.graphs),
        kernels=len(run.kernels),
        violations=run.violation_count,
        breaks=run.times_broken or (None if "breaks" in run.unrecorded else 0),
    )


def bytes_within(folder: Path) -> int:
    """Bytes of all files below the folder. Links are not followed; files that cannot be read count as 0."""
    total = 0
    pending = [os.fspath(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
