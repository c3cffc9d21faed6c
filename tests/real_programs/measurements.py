"""Where the programs run, and what torch has counted in a process when it ends."""

import atexit
import json
import os
import threading

import torch

DEVICE = os.environ.get("REAL_PROGRAMS_DEVICE", "cpu")
_FILE = os.environ.get("REAL_PROGRAMS_COUNTS", "")
_ended = threading.Event()
_peak = 0


def _write() -> None:
    """Write the graphs and breaks of the program, and the most memory of its device so far."""
    global _peak
    _peak = max(_peak, torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0)
    counters = torch._dynamo.utils.counters
    counted = {
        "graphs": counters["stats"].get("unique_graphs", 0),
        "breaks": sum(counters["graph_break"].values()),
        "device_bytes": _peak,
        "ended": _ended.is_set(),
    }
    with open(f"{_FILE}.new", "w") as file:
        json.dump(counted, file)
    os.replace(f"{_FILE}.new", _FILE)


def _write_again() -> None:
    """A comparison goes on after the program has ended: it adds to the memory, not to what the program counts."""
    global _peak
    while True:
        threading.Event().wait(0.2)
        peak = torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else 0
        if _ended.is_set() and peak > _peak:
            with open(_FILE) as file:
                counted = json.load(file)
            _peak = peak
            with open(f"{_FILE}.new", "w") as file:
                json.dump({**counted, "device_bytes": peak}, file)
            os.replace(f"{_FILE}.new", _FILE)


def _end() -> None:
    """The program has come to its end."""
    _ended.set()
    _write()


if _FILE:
    atexit.register(_end)
    if DEVICE == "cuda":
        threading.Thread(target=_write_again, daemon=True).start()
