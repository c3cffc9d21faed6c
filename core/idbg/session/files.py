"""How is a file of a session's folder read, or written, such that nobody meets half of it?

What is read may have been put there by anybody: links are not followed, pipes not waited for, and no more is read
than was asked for.
"""

import contextlib
import os
import stat
from pathlib import Path

LOG = "events.jsonl"
"""What a session is: everything that happened, a line each."""


def is_session(folder: Path) -> bool:
    """Whether the folder has an event log; it may be damaged."""
    try:
        return stat.S_ISREG((folder / LOG).lstat().st_mode)
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return False


def opened(path: Path) -> int:
    """A descriptor of the regular file. Raises OSError, also for a link and for what is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(f"{path} is no regular file")
    return descriptor


class NotRegular(OSError):
    """It is a folder, a pipe or a device."""


def read(path: Path, most: int) -> bytes:
    """What the regular file holds. Raises OSError, also where that is more than `most` bytes."""
    with open(opened(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path} is larger than {most} bytes")
    return data


def write(path: Path, data: bytes) -> None:
    """Put the file there as a whole: who reads it finds what was there before, or all of this.

    Unlike `whole_file.write_whole` it waits for no disk, as a run has hundreds of them, and takes the place of a link.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
