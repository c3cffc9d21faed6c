"""Read, write and lock files of a session's folder.

A session's folder may come from anybody: links are not followed, pipes are not waited for, and reads are bounded. A
process that writes a session holds a lock on its log, which the system releases however the process ends.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO

LOG = "events.jsonl"
"""The event log of a session: one event a line."""
_BLOCK = 1 << 16  # bytes
LOCKLESS = 24 * 3600.0
"""Seconds: on a file system without locks, a session whose log changed this recently counts as live."""


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


def opened_to_append(path: Path) -> BinaryIO:
    """The regular file, to be written after its last whole line: what follows that is removed. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "r+b")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise NotRegular(f"{path} is no regular file")
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - _BLOCK)
        file.seek(begin)
        last = file.read(end - begin).rfind(b"\n")
        if last >= 0:
            end = begin + last + 1
            break
        end = begin
    file.truncate(end)
    file.seek(end)
    return file


class NotRegular(OSError):
    """The path is a folder, a pipe or a device."""


def read(path: Path, most: int) -> bytes:
    """The content of a regular file. Raises OSError, also if it has more than `most` bytes."""
    with open(opened(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{path} is larger than {most} bytes")
    return data


def write(path: Path, data: bytes) -> None:
    """Replace the file atomically: readers find the old content or all of the new one.

    Unlike `whole_file.write_whole` it does not sync (a run writes hundreds of files), and it replaces a link.
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


def claim(descriptor: int) -> None:
    """Lock the log until it is closed or this process ends; does nothing on a file system without locks."""
    for _ in range(50):  # `is_live` of another process holds the lock for an instant
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return
        else:
            return


def give_up(descriptor: int) -> None:
    """Release the lock, also for children that inherited the descriptor."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_live(folder: Path) -> bool:
    """Whether a process writes to the session, or may do so on a file system without locks."""
    try:
        descriptor = opened(folder / LOG)
    except OSError:
        return False
    try:
        return not _free(descriptor)
    finally:
        os.close(descriptor)


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        return os.fstat(descriptor).st_mtime < time.time() - LOCKLESS
    return True
