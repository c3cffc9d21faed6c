"""Read a script that a session's records name, if it lies in the session's folder.

A report is handed to others, and records may come from anybody: only what lies in the session's folder is read,
whatever path a record names, through no link that leads out of it, and nothing but a regular file of a size that can be
read.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath

LARGEST = 1 << 20  # bytes
_FOLDER = "repros"


@dataclass(frozen=True)
class Script:
    """A script's text, and where it was found; `problem` says why there is none."""

    text: str = ""
    problem: str = ""
    path: str = ""


def read(path: str, folder: str) -> Script:
    """The script at a path that a record names, in the session's folder, also where that was moved."""
    if not folder:
        return Script(problem="where the session lies is not known")
    try:
        home = Path(folder).resolve()
        found = _inside(path, home)
        if found is None:
            return Script(problem="it is not in the session's folder")
        return _read(found)
    except (OSError, ValueError) as error:
        gone = isinstance(error, FileNotFoundError)
        return Script(problem="it is not there any more" if gone else f"it cannot be read: {error}")


def _inside(path: str, home: Path) -> Path | None:
    """The path in the session's folder, its links followed; None where it leads out of it."""
    parts = PurePath(path).parts
    places = [index for index, part in enumerate(parts) if part == _FOLDER]
    moved = home.joinpath(*parts[places[-1] :]) if places else home / path
    known = [real for each in (home / path, moved) if (real := each.resolve()).is_relative_to(home)]
    return next((real for real in known if real.exists()), known[0] if known else None)


def _read(path: Path) -> Script:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return Script(problem="it is no regular file")
        if status.st_size > LARGEST:
            return Script(problem=f"it is too large to stand here: {status.st_size:,} bytes")
        return Script(file.read(LARGEST).decode("utf-8", "replace"), path=str(path))
