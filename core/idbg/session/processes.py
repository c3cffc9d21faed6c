"""The processes of a session beside its main one: a folder with a whole session log each.

SESSION/processes/rank3/events.jsonl

A session may come from anybody: names that are no plain file names and links are refused, and only the first MOST are
read.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from idbg.schema.processes import Process, ProcessReport
from idbg.session import files
from idbg.startup.sitecustomize import passing

FOLDER = passing.PROCESSES
MOST = 20_000
"""Processes that are read of one session; a job of 1,000 ranks has some thousands."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_DIGITS = re.compile(r"(\d+)")


def is_name(text: str) -> bool:
    """Whether a process may have this name: a plain file name."""
    return _NAME.fullmatch(text) is not None


def in_order(name: str) -> tuple[tuple[int, str], ...]:
    """The key by which names are sorted: "rank2" before "rank10"."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name[:100]))


def names(session: Path) -> list[str]:
    """The names of the session's processes that have a log, sorted."""
    folder = session / FOLDER
    if not _is_folder(folder):
        return []
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_name(entry.name) and entry.is_dir(follow_symlinks=False) and files.is_session(folder / entry.name):
                found.append(entry.name)
                if len(found) == MOST:
                    break
    return sorted(found, key=in_order)


def find(session: Path, name: str) -> Path | None:
    """The folder of this process of the session; None if there is none with a log."""
    folder = session / FOLDER / name
    known = is_name(name) and _is_folder(folder.parent) and _is_folder(folder) and files.is_session(folder)
    return folder if known else None


def reports(session: Path, known: Mapping[str, ProcessReport]) -> list[ProcessReport]:
    """The processes of the session: those that its main log names (`known`), and those that it does not, as where it
    was cut off.
    """
    others = [name for name in names(session) if name not in known]
    return [*known.values(), *(ProcessReport(name=name) for name in others)]


def pid_file(session: Path, process: Process) -> Path:
    """The file in which the process that waits for this one notes how it ended."""
    return Path(passing.pid_file(str(session), process.pid, process.host))


def new_folder(session: Path, name: str) -> Path:
    """Create the folder of a process: that of `name`, or "rank3-2" where there is a "rank3". Raises OSError."""
    folder = session / FOLDER
    folder.mkdir(exist_ok=True)
    if not _is_folder(folder):
        raise NotADirectoryError(errno.ENOTDIR, "it is a link")
    for each in _candidates(name):
        with contextlib.suppress(FileExistsError):
            (folder / each).mkdir()
            return folder / each
    raise FileExistsError(errno.EEXIST, f"there are {MOST} of the name {name}")


def _candidates(base: str) -> Iterator[str]:
    yield base
    for number in range(2, MOST + 2):
        yield f"{base}-{number}"


def _is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return False
