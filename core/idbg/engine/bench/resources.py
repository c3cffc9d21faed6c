"""Measure the peak memory of a call, and the processor time that other processes use."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import torch

from idbg.engine.compat import gpu

_STAT, _STATUS, _CLEAR = Path("/proc/stat"), Path("/proc/self/status"), Path("/proc/self/clear_refs")
_TICKS = os.sysconf("SC_CLK_TCK")
CALLS = 3


def resident() -> int | None:
    """Bytes of this process in memory now; None if the system does not report them."""
    return _field("VmRSS")


def peak_bytes(call: Callable[[], object], before: int | None) -> int | None:
    """Bytes at the peak of the calls: the allocator's on a GPU, else what the process uses above `before`; None if
    neither is known.
    """
    if gpu.in_use():
        torch.cuda.reset_peak_memory_stats()
        _repeat(call)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    try:
        _CLEAR.write_text("5")  # the peak starts anew
    except OSError:
        return None
    _repeat(call)
    peak = _field("VmHWM")
    return None if peak is None or before is None else max(peak - before, 0)


def _repeat(call: Callable[[], object]) -> None:
    for _ in range(CALLS):
        call()


def _field(name: str) -> int | None:
    try:
        rows = _STATUS.read_text().splitlines()
    except OSError:
        return None
    lines = [row for row in rows if row.startswith(name + ":")]
    return int(lines[0].split()[1]) * 1024 if lines else None


class OtherProcesses:
    """Measures what other processes use of the machine's processors, from its creation on."""

    def __init__(self) -> None:
        self._began, self._own, self._all = time.perf_counter(), _own_seconds(), _machine_seconds()

    def share(self) -> float | None:
        """The share of the processors that other processes have used, 0 to 1; None if the system does not report it."""
        now, seconds = _machine_seconds(), time.perf_counter() - self._began
        if now is None or self._all is None or seconds <= 0:
            return None
        used = (now - self._all) - (_own_seconds() - self._own)
        return min(max(used / (seconds * (os.cpu_count() or 1)), 0.0), 1.0)


def _own_seconds() -> float:
    """Seconds of processor time of this process."""
    times = os.times()
    return times.user + times.system


def _machine_seconds() -> float | None:
    """Seconds of processor time of the machine: all but idle, I/O wait and steal."""
    try:
        fields = [int(field) for field in _STAT.read_text().partition("\n")[0].split()[1:]]
    except (OSError, ValueError):
        return None
    user, nice, system, _, _, *interrupts = fields[:7]
    return (user + nice + system + sum(interrupts)) / _TICKS
