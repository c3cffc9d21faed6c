"""Find the processes that a process has started, measure their memory, and end them. From /proc."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
END_SECONDS = 10.0  # a process that waits for a device cannot be killed before the device answers


@dataclass(frozen=True)
class Process:
    """One process. `began` distinguishes it from a later one with the same number; `memory`: resident bytes."""

    pid: int
    parent: int
    session: int
    began: int
    memory: int
    is_dead: bool = False


def process(pid: int) -> Process | None:
    """The process of this number; None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
        return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21]) * PAGE, fields[0] in "ZX")
    except (OSError, IndexError, ValueError):
        return None


def started_by(root: Process) -> list[Process]:
    """The living descendants of `root`, and the processes of its session if it leads one; without `root` itself, this
    process and its ancestors. Empty if `root` is an ancestor of this process, or its number was reused.
    """
    every = [process(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    found = {each.pid: each for each in every if each is not None}
    now, ours = found.get(root.pid), _ours(found)
    if root.pid in ours - {os.getpid()} or (now is not None and now.began != root.began):
        return []
    family = {root.pid}
    grown = True
    while grown:
        more = {each.pid for each in found.values() if each.parent in family or each.session == root.pid} - family
        family |= more
        grown = bool(more)
    return [found[pid] for pid in family - {root.pid} - ours if pid in found and not found[pid].is_dead]


def _ours(found: Mapping[int, Process]) -> set[int]:
    """This process and its ancestors."""
    pid, ours = os.getpid(), {0, 1}
    while pid not in ours:
        ours.add(pid)
        pid = found[pid].parent if pid in found else 0
    return ours


def memory_of(processes: Iterable[Process]) -> int:
    """Resident bytes of these processes; shared memory counts for each."""
    now = [process(each.pid) for each in processes]
    return sum(each.memory for each in now if each is not None)


def memory_of_machine() -> int:
    """Bytes of physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE


def send(number: signal.Signals, processes: Iterable[Process]) -> None:
    """Signal those of the processes that still run."""
    for each in processes:
        now = process(each.pid)
        if now is not None and now.began == each.began and not now.is_dead:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each.pid, number)


def end_all(root: Process, patience: float = 0.0) -> None:
    """End all processes that `root` started, but not `root`: SIGTERM, `patience` seconds to clean up, then SIGKILL
    until none is left, also of those that are started meanwhile.
    """
    left = started_by(root)
    if left and patience:
        send(signal.SIGTERM, left)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and started_by(root):
            time.sleep(0.01)
    deadline = time.monotonic() + END_SECONDS
    while (left := started_by(root)) and time.monotonic() < deadline:
        send(signal.SIGKILL, left)
        time.sleep(0.005)
