"""How much memory does a call take at its peak?"""

from collections.abc import Callable
from pathlib import Path

import torch

from idbg.engine.compat import gpu

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
CALLS = 3


def resident() -> int | None:
    """Bytes of this process in memory now; None where the system does not tell."""
    return _field("VmRSS")


def peak_bytes(call: Callable[[], object], before: int | None) -> int | None:
    """Bytes at the peak of the calls: the allocator's on a GPU, else the process's above what it had `before`; None
    where neither is told.
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
