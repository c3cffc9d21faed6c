"""Does a process have this session open now?

It holds a lock on the log for as long as it writes there, which the system takes back however the process ends.
"""

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path

from idbg.session import files
from idbg.session.files import LOG

LOCKLESS = 24 * 3600.0
"""Seconds: where the file system knows no locks, who wrote a log not longer ago may be at it still."""


def claim(descriptor: int) -> None:
    """Hold the log until it is closed, or this process ends. Where there are no locks, there is none."""
    for _ in range(50):  # who asks whether we live holds it for an instant
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return
        else:
            return


def give_up(descriptor: int) -> None:
    """Let go of the log, also for children that have inherited it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_live(folder: Path) -> bool:
    """Whether a process writes to the session; where that cannot be known, whether one may."""
    try:
        descriptor = files.opened(folder / LOG)
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
