"""Read the files that a session's records name.

Records may come from anybody, and name anything. So only regular files are opened, for no longer than a read takes that
never waits, and no more is read than their size: a pipe, a terminal or a device is not even opened, and what
the kernel makes up as it is read (its message log among them) has the size 0.
"""

import os
import stat
from functools import lru_cache

LARGEST = 8 << 20  # bytes: 100,000 lines are 4 million
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read(path: str, since: float) -> tuple[str, str]:
    """A file's text, and what the user should know of it: that it changed since the run, or why it was not read."""
    try:
        status = os.stat(path)
        if why := _refused(status):
            return "", f"not read: {why}"
        text = _read(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError) as error:
        return "", f"cannot be read ({_error_words(error)})"
    return text, "edited since this run" if since and status.st_mtime > since else ""


def not_editable(path: str) -> str:
    """Why an editor cannot be started on this; "" if it can."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        return (
            "is not there any more"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read ({_error_words(error)})"
        )
    kind = _kind(status)
    return f"is {kind}" if kind else ""


def real(path: str) -> str:
    """The path without links, as one file may be spelled in two ways; as it is where no file can have such a name."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _kind(status: os.stat_result) -> str:
    """What it is, if it is no regular file."""
    if stat.S_ISREG(status.st_mode):
        return ""
    return next((name for holds, name in _KINDS if holds(status.st_mode)), "no regular file")


def _refused(status: os.stat_result) -> str:
    if kind := _kind(status):
        return f"it is {kind}"
    if not status.st_size:
        return "its size is 0"
    return f"it has {status.st_size >> 20:,} MiB" if status.st_size > LARGEST else ""


@lru_cache(maxsize=16)
def _read(path: str, mtime_ns: int, size: int) -> str:
    """Read once for each time that the file was written (`mtime_ns` is only the cache's key). Raises OSError."""
    # it may be another file by now: neither wait for it, nor take a terminal for ours
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if why := _refused(os.fstat(handle)):
            raise OSError(why)
        data = b""
        while len(data) < size and (more := os.read(handle, size - len(data))):
            data += more
    finally:
        os.close(handle)
    return data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def _error_words(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "no file has such a name"
