"""Recognize what can be imported, and list the trace files of a folder."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from idbg.schema.processes import Process
from idbg.traces.packed import PackedFile, is_packed
from idbg.traces.stream import is_trace

Kind = Literal["trace", "debug", "triton", "archive"]
"""A TORCH_TRACE folder or file, a torch_compile_debug folder, tritonparse's ndjson, or an archive of any."""

HEAD = 1 << 16  # bytes of a file in which its kind and its rank are looked for
MOST_FILES = 20_000  # of a folder
MOST_DEPTH = 6
_SESSION_LOG = "events.jsonl"
_TRACE_NAME = re.compile(r"dedicated_log_torch_trace_.*\.log(\.gz|\.zst)?$")
_TRITON_NAME = re.compile(r"\.ndjson(\.gz)?$")
_RANK_NAME = re.compile(r"_rank_(\d{1,9})(?=[_.])")
_RANK = re.compile(rb'"rank": (\d{1,9})\b')
_PID = re.compile(rb"^V\d{4} [\d:.]+ (\d{1,10}) ", re.MULTILINE)
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tzst")
_RUN = re.compile(r"(?:.*[^A-Za-z0-9])?run_\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d_\d+-pid_(\d{1,10})$")
GRAPH_FOLDER = re.compile(r"^(.*?)__(?:(\d+)_(forward|backward|inference)(?:_\d+)?|_(\d+))\.(\d+)$")
"""The folder of a graph among Inductor's dumps: of which model, number, part, and the graph's number; of AOTInductor
its number alone.
"""
_TRITON_PID = re.compile(rb'"pid": ?(\d{1,10})\b')
_TRITON_IDS = re.compile(r"_rank_(\d{1,9}|none)_(?:pid_(\d{1,10})_)?(?:host_(.*?)_\.)?")


def kind_of(path: Path) -> Kind | None:
    """What can be imported from there; None where nothing can."""
    try:
        if path.is_dir():
            return _kind_of_folder(path)
        if not path.is_file():
            return None
        if path.name.lower().endswith(_ARCHIVES):
            return "archive"
        if _TRITON_NAME.search(path.name):
            return "triton"
        return "trace" if path.suffix != ".py" and is_trace(head_of(path)) else None
    except OSError:
        return None


def _kind_of_folder(folder: Path) -> Kind | None:
    found: set[Kind] = set()
    for path in files_of(folder):
        if _is_trace_file(path):
            return "trace"
        if _run_folder(path, folder) is not None:
            found.add("debug")
        elif _TRITON_NAME.search(path.name):
            found.add("triton")
    return next((kind for kind in ("debug", "triton") if kind in found), None)


def _run_folder(path: Path, folder: Path) -> Path | None:
    """The run_… folder of a torch_compile_debug folder that the path is in; the named folder, where that is a part of
    one: the compiler's, or a graph's.
    """
    above = [each for each in (path, *path.parents) if each == folder or folder in each.parents]
    run = next((each for each in above if _RUN.match(each.name)), None)
    return run or (folder if any(GRAPH_FOLDER.match(each.name) for each in above[1:]) else None)


def files_of(folder: Path) -> Iterator[Path]:
    """The regular files in a folder and below, sorted in each folder; links are not followed, and sessions, which may
    hold traces of their own, not looked into.
    """
    count = 0
    pending = [(folder, 0)]
    while pending:
        current, depth = pending.pop()
        try:
            with os.scandir(current) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == _SESSION_LOG for entry in listed):
            continue
        for entry in listed:
            if entry.is_file(follow_symlinks=False):
                count += 1
                if count > MOST_FILES:
                    return
                yield Path(entry.path)
        folders = [Path(entry.path) for entry in listed if entry.is_dir(follow_symlinks=False)]
        pending += [(each, depth + 1) for each in reversed(folders)] if depth < MOST_DEPTH else []


def parts_of(source: Path, kind: Kind) -> list[Path]:
    """What is imported, each of one process: the trace files, the folders of dumps, or the ndjson files."""
    if not source.is_dir():
        return [source]
    files = files_of(source)
    match kind:
        case "debug":
            folders = (_run_folder(path, source) for path in files)
            return list(dict.fromkeys(folder for folder in folders if folder is not None))
        case "triton":
            return [path for path in files if _TRITON_NAME.search(path.name)]
        case _:
            return [path for path in files if _is_trace_file(path)]


def by_process(parts: list[Path], kind: Kind) -> dict[Path, list[Path]]:
    """The parts that are of one process, each by the first: tritonparse makes a file for each frame. Of a trace each
    file is a process of its own, as it is of a dump.
    """
    found: dict[Path, list[Path]] = {}
    firsts: dict[Identity, Path] = {}
    for path in parts:
        first = path
        with contextlib.suppress(OSError):
            if kind == "triton" and (identity := identity_of(path)).pid:
                first = firsts.setdefault(identity, path)
        found.setdefault(first, []).append(path)
    return found


def dumps_of(source: Path, pid: int) -> Path | None:
    """The run_… folder of a torch_compile_debug folder that this process wrote beside its trace."""
    if not source.is_dir() or not any(_RUN.match(part) for part in _folders(source)):
        return None
    return next((folder for folder in parts_of(source, "debug") if identity_of(folder).pid == pid), None)


def _folders(source: Path) -> list[str]:
    """The names of a folder's folders, and of those in them."""
    try:
        above = [entry for entry in os.scandir(source) if entry.is_dir(follow_symlinks=False)]
        return [each.name for entry in above for each in (entry, *os.scandir(entry.path))]
    except OSError:
        return []


def _is_trace_file(path: Path) -> bool:
    """By its name; another .log file by its first line."""
    if _TRACE_NAME.match(path.name):
        return True
    try:
        return path.name.endswith((".log", ".log.gz", ".log.zst")) and is_trace(head_of(path))
    except OSError:
        return False


def head_of(path: Path) -> bytes:
    """The beginning of a file. Raises OSError."""
    with opened(path) as file:
        data = file.read(HEAD)
        if not data and isinstance(file, PackedFile) and file.damage:
            raise OSError(errno.EIO, f"it {file.damage}")
        return data


def opened(path: Path) -> BinaryIO | PackedFile:
    """The file, unpacked, without a wait for the writer of a pipe. Raises OSError."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)
    return PackedFile(file, path.name) if is_packed(path) else file


class Identity(NamedTuple):
    """Whose trace a file is, as far as its name and its beginning tell."""

    pid: int
    rank: int | None
    host: str = ""

    @property
    def name(self) -> str:
        """The process's name in a session."""
        return f"rank{self.rank}" if self.rank is not None else f"process-{self.pid}" if self.pid else "process"

    def process(self, started: float) -> Process:
        """The process as a record."""
        return Process(name=self.name, pid=self.pid, rank=self.rank, host=self.host, how="import", started=started)


def identity_of(path: Path) -> Identity:
    """Whose trace or dump it is. Raises OSError."""
    if path.is_dir():
        run = next((run for name in reversed(path.absolute().parts) if (run := _RUN.match(name))), None)
        return Identity(int(run[1]) if run else 0, None)
    if _TRITON_NAME.search(path.name):
        ids = _TRITON_IDS.search(path.name)
        if ids is None:
            inside = _TRITON_PID.search(head_of(path))
            return Identity(int(inside[1]) if inside else 0, None)
        return Identity(int(ids[2] or 0), int(ids[1]) if ids[1].isdigit() else None, ids[3] or "")
    head = head_of(path)
    named, inside, pid = _RANK_NAME.search(path.name), _RANK.search(head), _PID.search(head)
    rank = int(named[1]) if named else int(inside[1]) if inside else None
    return Identity(int(pid[1]) if pid else 0, rank)
