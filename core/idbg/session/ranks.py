"""Read the digests of a session's ranks, and compare them.

SESSION/processes/rank3/digest.json is derived from the log beside it: one that is missing, or of another size of the
log, is made again. So a job of 1,000 ranks opens without its logs. It is missing where the job's launcher was killed,
and of imported traces.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.analysis.ranks.compare import compare
from idbg.analysis.ranks.digest import digest
from idbg.analysis.ranks.nodes import RankRun, with_nodes
from idbg.schema import strict_json
from idbg.schema.errors import OutputError
from idbg.schema.events import SessionOpened
from idbg.schema.processes import ProcessEnd, ProcessReport
from idbg.schema.ranks import DIGEST_FORMAT, Ended, RankComparison, RankDifference, RankDigest
from idbg.schema.runs import History, Run, fold
from idbg.session import files, processes, reading
from idbg.session.files import LOG

Show = Callable[[int, int], None]
NAME = "digest.json"
_MOST = 64 << 20  # bytes
_MOST_DETAILED = 4
"""Differences of graphs whose nodes are looked for: each needs two logs."""


def of_session(
    session: Path, reports: Iterable[ProcessReport] | None = None, show: Show = lambda done, of: None
) -> RankComparison:
    """The ranks of a session, held against one another. `reports`: what the main process's log knows of the processes,
    which is read where they are None. `show` is called before each log that is read: so many processes are done.

    A log that cannot be read is a rank that is not seen. Raises OutputError where the session cannot be read.
    """
    known = fold(reading.load(session)).processes.values() if reports is None else reports
    ends = {each.name: each.ended for each in known if each.ended is not None}
    latest: dict[int, RankDigest] = {}
    for found in _digests(session, ends, show):
        if found.rank not in latest or latest[found.rank].started <= found.started:
            latest[found.rank] = found
    whole = compare([*latest.values()], now=time.time() if files.is_live(session) else None)
    return replace(whole, differences=tuple(_detailed(session, whole)))


def add(history: History, session: Path, show: Show = lambda done, of: None) -> None:
    """Compare the ranks of the session in the history, where it has some. `show`: see `of_session`. Raises
    OutputError.
    """
    found = of_session(session, list(history.processes.values()), show)
    history.ranks = found if found.digests else None


def write(folder: Path) -> None:
    """Write the digest of the process in this folder from its log, if it is a rank. Raises OutputError."""
    found = _of_log(folder)
    if found is not None:
        _keep(folder, found)


def _digests(session: Path, ends: Mapping[str, ProcessEnd], show: Show) -> Iterator[RankDigest]:
    names = processes.names(session)
    for at, name in enumerate(names):
        folder = session / processes.FOLDER / name
        found = _digest(folder, partial(show, at, len(names)))
        if found is not None:
            yield _ended(found, folder, ends.get(name))


def _digest(folder: Path, reads: Callable[[], None]) -> RankDigest | None:
    """The digest of a rank; None of a process that is no rank, or has no log that can be read."""
    try:
        size = os.stat(folder / LOG, follow_symlinks=False).st_size
        known = msgspec.json.decode(files.read(folder / NAME, _MOST), type=RankDigest)
        if (known.format, known.log_bytes, known.name) == (DIGEST_FORMAT, size, folder.name):
            return known
    except (OSError, ValueError, RecursionError):
        pass
    try:
        if not _is_rank(folder):
            return None
        reads()
        found = _of_log(folder)
    except OutputError:
        return None
    if found is not None and not files.is_live(folder):
        _keep(folder, found)
    return found


def _is_rank(folder: Path) -> bool:
    """Whether its log opens as that of a rank. Raises OutputError."""
    with reading.opened_log(folder) as file:
        opened = reading.first_event(file)
    return isinstance(opened, SessionOpened) and opened.process is not None and opened.process.rank is not None


def _of_log(folder: Path) -> RankDigest | None:
    size = os.stat(folder / LOG, follow_symlinks=False).st_size
    found = reading.read(folder).events
    history = fold(found)
    process = history.process
    if process is None or process.rank is None:
        return None
    known = digest(
        history.last,
        folder.name,
        process.rank,
        world_size=process.world_size,
        host=process.host,
        pid=process.pid,
    )
    return replace(known, log_bytes=size, seen=found[-1].at, started=process.started)


def _keep(folder: Path, found: RankDigest) -> None:
    try:
        files.write(folder / NAME, strict_json.encode(found))
    except OSError:  # a session that cannot be written is read all the same
        return


def _ended(found: RankDigest, folder: Path, end: ProcessEnd | None) -> RankDigest:
    """With how its process ended: who started it knows that better than its log."""
    if end is not None:
        status = end.exit_status
        if status is None and not end.signal:  # nobody saw it end
            return replace(found, ended="lost") if found.ended == "running" else found
        ended: Ended = (
            "killed" if end.signal else "failed" if status else found.ended if found.ended != "running" else "ended"
        )
        return replace(found, ended=ended, exit_status=status, signal=end.signal, phase=end.last_phase or found.phase)
    if found.ended == "running" and not files.is_live(folder):
        return replace(found, ended="lost")
    return found


def _detailed(session: Path, whole: RankComparison) -> Iterator[RankDifference]:
    """The differences, the first ones of graphs with the nodes that differ."""
    names = {each.rank: each.name for each in whole.digests}
    runs: dict[int, Run | None] = {}
    left = _MOST_DETAILED
    for each in whole.differences:
        pair = []
        if each.kind in ("graph", "constants") and left:
            left -= 1
            for rank, side in ((side.ranks[0], side) for side in each.sides[:2]):
                if rank not in runs:
                    runs[rank] = _run(session / processes.FOLDER / names[rank])
                if (run := runs[rank]) is not None:
                    pair.append(RankRun(rank, run, side.frame))
        yield with_nodes(each, *pair) if len(pair) == 2 else each


def _run(folder: Path) -> Run | None:
    try:
        return fold(reading.read(folder).events).last
    except OutputError:
        return None
