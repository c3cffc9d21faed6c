"""Join the sessions of the hosts of one job: the ranks of all of them are processes of a new session."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

import idbg
from idbg.schema import events
from idbg.schema.errors import BadInput, OutputError
from idbg.schema.processes import Process, ProcessReport
from idbg.schema.runs import History, fold
from idbg.schema.strict_json import like
from idbg.session import files, processes, reading
from idbg.session.event_bus import EventBus
from idbg.session.files import LOG
from idbg.session.store import Store
from idbg.traces import archives

_MOST_DEPTH = 3
_SAME_JOB = "merge the sessions that the hosts of one job wrote"


def merge(sessions: Sequence[Path], output: Path, names: Mapping[Path, Path] = MappingProxyType({})) -> Path:
    """The folder of the new session, in `output`. The sessions stay as they are. `names` are the archives that some of
    them come from.

    Raises BadInput where they are not of one job, OutputError where one cannot be read or the new one not be written.
    """
    histories = {session: fold(reading.load(session)) for session in sessions}
    parts = {session: _processes(session, history) for session, history in histories.items()}
    _check({names.get(session, session): reports for session, reports in parts.items()})
    opened = reading.opening(reading.load(sessions[0]))
    store = Store.create(output, opened.program)
    bus = EventBus(store)
    bus.emit(replace(opened, version=idbg.__version__, folder=str(store.folder)))
    every = [(report, session) for session, reports in parts.items() for report in reports]
    try:
        for report, session in sorted(every, key=lambda each: each[0].started):
            folder = processes.new_folder(store.folder, report.name)
            _copy(session / processes.FOLDER / report.name, folder)
            bus.emit(events.ProcessStarted(process=like(Process, report, name=folder.name), at=report.started))
            if report.ended is not None:
                bus.emit(like(events.ProcessEnded, report.ended, name=folder.name))
    except OSError as error:
        raise OutputError(
            f"cannot write the session {store.folder}: {error.strerror or error}", hint="check the disk and --output"
        ) from error
    finally:
        bus.close()
    return store.folder


@contextmanager
def unpacked(archive: Path, output: Path) -> Iterator[tuple[Path, list[str]]]:
    """The session in an archive, and what of that was left out, a sentence each. It is unpacked into a folder in
    `output`, which is removed afterwards. Raises BadInput where it does not hold one session, OutputError where nothing
    can be written.
    """
    with ExitStack() as stack:
        try:
            output.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=".unpacked-", dir=output))
            left_out = archives.unpack(archive, Path(folder) / archive.name)
        except OSError as error:
            raise OutputError(
                f"cannot unpack {archive} into {output}: {error.strerror or error}", hint="check the disk and --output"
            ) from error
        yield _session_in(Path(folder) / archive.name), left_out


def _session_in(place: Path) -> Path:
    """The one session in this folder, or at most _MOST_DEPTH folders below. Raises BadInput."""
    level, found = [place], [place] if files.is_session(place) else []
    for _ in range(_MOST_DEPTH):
        if found or not level:
            break
        level = [each for folder in level for each in sorted(folder.iterdir()) if each.is_dir()]
        found = [each for each in level if files.is_session(each)]
    if not found:
        raise BadInput(f"there is no session in {place.name}", hint="pack the folder that idbg run names at its end")
    if len(found) > 1:
        raise BadInput(f"{place.name} holds {len(found):,} sessions", hint="pack one alone, or unpack and name them")
    return found[0]


def _processes(session: Path, history: History) -> list[ProcessReport]:
    """Those of a session, as far as they have a log; what the main log does not name is read from their own."""
    found = []
    for name in processes.names(session):
        known = history.processes.get(name)
        if known is None:
            process = reading.opening(reading.load(session / processes.FOLDER / name)).process
            known = like(ProcessReport, process, name=name) if process is not None else None
        if known is not None:
            found.append(known)
    return found


def _check(parts: dict[Path, list[ProcessReport]]) -> None:
    """Raises BadInput where the sessions cannot be of one job."""
    owner: dict[int, Path] = {}
    size: dict[int, Path] = {}
    for session, reports in parts.items():
        ranks = {report.rank for report in reports if report.rank is not None}
        if not ranks:
            raise BadInput(f"the session {session} has no rank", hint="idbg run --nproc-per-node N starts ranks")
        for rank in sorted(ranks):
            if rank in owner:
                raise BadInput(f"rank {rank} is in {owner[rank]} and in {session}: these are two jobs", hint=_SAME_JOB)
            owner[rank] = session
        size |= {report.world_size: session for report in reports if report.world_size is not None}
    if len(size) > 1:
        (one, first), (other, second) = list(size.items())[:2]
        raise BadInput(f"{first} is of a job of {one} ranks, and {second} of one of {other}", hint=_SAME_JOB)


def _copy(source: Path, target: Path) -> None:
    """Copy a process's folder: its regular files and folders, and no links."""
    with os.scandir(source) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                (target / entry.name).mkdir()
                _copy(Path(entry.path), target / entry.name)
            elif stat.S_ISREG(mode) and not (entry.name.startswith(".") and entry.name != LOG):
                shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
