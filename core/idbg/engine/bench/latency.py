"""Measure the latency of a call, after its times have settled."""

import time
from collections.abc import Callable
from itertools import pairwise
from math import ceil
from statistics import median

import torch

from idbg.engine.bench.workload import Call
from idbg.engine.compat import gpu
from idbg.schema.bench import Latency

WINDOW = 5  # calls, whose median must be that of the window before
STILL = 0.05
WARMUP_SECONDS = 30.0
MOST_SECONDS = 60.0  # of sampling
STEPS = 100  # of the timer, that a sample must take
OVERHEAD = 0.01  # at most, of a sample
QUEUE_SECONDS = 2e-3  # of a sample on a GPU: its end waits for the queue, which was 7 % of samples of 0.4 ms on an H200


def synchronize() -> None:
    """Wait for the GPU, if one is in use."""
    if gpu.in_use():
        torch.cuda.synchronize()


def seconds(call: Call, block: int = 1) -> float:
    """Seconds of a call, with the GPU's work: the mean of `block` calls in a row."""
    synchronize()
    began = time.perf_counter()
    for _ in range(block):
        call()
    synchronize()
    return (time.perf_counter() - began) / block


def latency(
    call: Call,
    runs: int,
    most: float = MOST_SECONDS,
    *,
    warmup: float = WARMUP_SECONDS,
    begins: Callable[[], None] = lambda: None,
) -> Latency:
    """Up to `runs` samples, within `most` seconds, of the time that a caller waits: on a GPU with synchronization. The
    warm-up takes at most `warmup` seconds, and `begins` is called after it.

    CUDA events would miss the time that Python takes, which is most of a small model's call.
    """
    calls, settled = settle(call, warmup)
    each = max(median(calls[-WINDOW:]), 1e-9)
    wanted = max(1, min(runs, int(most / each)))
    least = max(STEPS * resolution(), overhead() / OVERHEAD, QUEUE_SECONDS if gpu.in_use() else 0.0)
    block = max(1, ceil(least / each))
    begins()
    samples = [1e3 * seconds(call, block) for _ in range(wanted)]
    return Latency.of(samples, block, len(calls), settled)


def overhead() -> float:
    """Seconds that `seconds` measures for an empty call."""
    return median(seconds(lambda: None) for _ in range(100))


def settle(call: Call, most: float = WARMUP_SECONDS) -> tuple[list[float], bool]:
    """The times of calls until two windows of them agree, and whether they did within `most` seconds."""
    times: list[float] = []
    while not times or sum(times) < most:
        times.append(seconds(call))
        if len(times) >= 2 * WINDOW and not len(times) % WINDOW:
            before, now = median(times[-2 * WINDOW : -WINDOW]), median(times[-WINDOW:])
            if abs(now - before) <= STILL * before:
                return times, True
    return times, False


def resolution() -> float:
    """The smallest observed step of the timer, in seconds."""
    ticks = [time.perf_counter() for _ in range(1000)]
    return min(later - earlier for earlier, later in pairwise(ticks) if later > earlier)
