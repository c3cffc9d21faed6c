"""Who else used the processors while we measured?"""

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_TICKS = os.sysconf("SC_CLK_TCK")


class Busy:
    """From its making on: `others()` is the part of the machine's processors that other processes used, 0 to 1; None
    where the system does not tell.
    """

    def __init__(self) -> None:
        self._began, self._own, self._all = time.perf_counter(), _own(), _all()

    def others(self) -> float | None:
        """Processors that other processes used since this was made, over all that there are, 0 to 1."""
        now, seconds = _all(), time.perf_counter() - self._began
        if now is None or self._all is None or seconds <= 0:
            return None
        used = (now - self._all) - (_own() - self._own)
        return min(max(used / (seconds * (os.cpu_count() or 1)), 0.0), 1.0)


def _own() -> float:
    """Seconds of processor that this process has used."""
    times = os.times()
    return times.user + times.system


def _all() -> float | None:
    """Seconds of processor that the machine has used: all but idle, waiting for disks, and what was stolen from it."""
    try:
        fields = [int(field) for field in _STAT.read_text().partition("\n")[0].split()[1:]]
    except (OSError, ValueError):
        return None
    user, nice, system, _, _, *interrupts = fields[:7]
    return (user + nice + system + sum(interrupts)) / _TICKS
