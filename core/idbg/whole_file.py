"""Write a file atomically: a reader finds it whole, or as it was before. Read one that may have no end."""

import contextlib
import errno
import os
import stat
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put the content there by a rename, so also where the process or the machine stops; the file keeps its mode.

    A link is followed: what it points to is replaced. What is no file (/dev/null, a pipe) is written to, and stays.
    Raises OSError, and leaves nothing behind.
    """
    import tempfile  # takes longer than all that the first frame needs of this module

    if _is_other(path):
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))
    descriptor, spare = tempfile.mkstemp(dir=target.parent, prefix=".idbg-", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(spare, _mode(target))
        os.replace(spare, target)
    except BaseException:  # whatever ends it, Ctrl+C too, leaves no part behind; it is raised again
        with contextlib.suppress(OSError):
            os.unlink(spare)
        raise


LARGEST = 16 << 20
"""Bytes of a file that a user writes by hand."""


def read_whole(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file that the user names. Raises OSError, also for more than `most` bytes: /dev/zero has no end,
    and a pipe has no size.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, "it is too large for such a file")
    return content


def _is_other(path: Path) -> bool:
    """Whether there is something that no file may take the place of: /dev/stdout is a link to what has no name."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _mode(path: Path) -> int:
    """That of the file that is there, or of one that the user would make."""
    try:
        return path.stat().st_mode & 0o7777
    except OSError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
