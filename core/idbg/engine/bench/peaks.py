"""How fast is this machine at most: a copy, a matmul, a launch? Measured once, and kept."""

import contextlib
import hashlib
import os
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median

import msgspec
import torch

from idbg.config import places
from idbg.engine.bench.busy import Busy
from idbg.engine.bench.call import processor
from idbg.engine.bench.latency import seconds
from idbg.engine.bench.launches import Clock, launches
from idbg.engine.compat import gpu
from idbg.schema.kernel_times import Peaks

COPIED = 256 << 20  # bytes
SHORT = 0.01  # seconds: shorter calls are timed in blocks that take so long
TIMES = 5  # of which the best counts
SMALLEST, LARGEST = 256, 8192  # sides of a matmul
LONG = 0.1  # seconds: a matmul that takes so long is large enough
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LAUNCHED = 100
HOST_SECONDS = 3e-4  # a call of two launches takes the processor less
BUSY = 0.1  # of the processors, that others used meanwhile

_decode = msgspec.json.Decoder(Peaks).decode


def peaks(device: torch.device, folder: Path | None = None, tell: Callable[[str], object] = lambda _: None) -> Peaks:
    """The device's peaks, from the user's cache (or `folder`) where they were measured before, else measured now and
    kept there. `tell` hears which of both it is.
    """
    asked = unmeasured(device)
    path = place(asked, folder)
    try:
        kept = _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):  # there is none, or it is broken: measured anew
        tell("measuring the machine's peaks")
        measured = _measured(asked, device)
    else:
        tell("the machine's peaks, as measured before")
        return kept
    if measured.copy_bytes_per_s and (measured.others or 0) <= BUSY:  # or too low a peak would stay for good
        _keep(measured, path)
    return measured


def unmeasured(device: torch.device) -> Peaks:
    """The record of this device's peaks before anything is measured: what they are of, and how the machine is set."""
    return Peaks(
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
        torch=str(torch.__version__),
        threads=0 if device.type == "cuda" else torch.get_num_threads(),
        precision=torch.get_float32_matmul_precision(),
    )


def place(of: Peaks, folder: Path | None = None) -> Path:
    """The file that keeps these peaks, named for the device, torch, threads and precision."""
    key = "|".join((of.device, of.torch, str(of.threads), of.precision))
    name = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return (folder or places.cache()) / f"peaks-{name}.json"


def _keep(measured: Peaks, path: Path) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # no room, or not ours to write: measured anew the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(measured))
        part.replace(path)


def _measured(asked: Peaks, device: torch.device) -> Peaks:
    with torch.no_grad():
        empty = _empty_launches(device)  # first: it compiles
        busy = Busy()
        copied = _copy(device)
        products = {str(dtype).removeprefix("torch."): _matmul(device, dtype) for dtype in DTYPES}
    return msgspec.structs.replace(
        asked,
        copy_bytes_per_s=copied,
        matmul_flops_per_s={dtype: speed for dtype, speed in products.items() if speed is not None},
        launch_us=empty,
        others=None if device.type == "cuda" else busy.others(),
    )


def _best(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several blocks of calls: of many short ones, that waiting for a GPU does not count."""
    call()
    block = max(1, ceil(SHORT / seconds(call)))
    return min(seconds(call, block) for _ in range(TIMES))


def _copy(device: torch.device) -> float | None:
    """Bytes read and written in a second; None where there is no room for it."""
    try:
        source = torch.ones(COPIED, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
    except RuntimeError:  # torch's OutOfMemoryError, and what it raises on a CPU
        return None
    return 2 * COPIED / _best(lambda: target.copy_(source))


def _matmul(device: torch.device, dtype: torch.dtype) -> float | None:
    """FLOP/s of the fastest square product that does not take long; None where the dtype has none."""
    side, best = SMALLEST, 0.0
    while side <= LARGEST:
        try:
            # random numbers: a GPU is faster on equal ones, which take it less power
            took = _best(partial(torch.mm, *torch.randn(2, side, side, device=device).to(dtype)))
        except RuntimeError:  # no room, or no such kernel
            break
        best = max(best, 2 * side**3 / took)
        if took > LONG / 8:  # twice the side takes eight times as long
            break
        side *= 2
    return best or None


def _empty_launches(device: torch.device) -> dict[str, float]:
    """Microseconds of a launch with next to no work, by the kind of kernel; of those that can be had here."""
    x = torch.ones(8, 8, device=device)
    compiled = torch.compile(lambda x: torch.mm(x, x).sin())
    with launches() as launched:
        compiled(x)
        clock = Clock(range(len(launched.all)) if device.type == "cuda" else ())
        with launched.through(clock):
            if device.type == "cuda":
                gpu.keep_busy(LAUNCHED * HOST_SECONDS)
            for _ in range(LAUNCHED):
                compiled(x)
        taken: dict[str, list[float]] = defaultdict(list)
        for number, microseconds in clock.read():
            taken[launched.all[number].kind].append(microseconds)
    return {kind: median(samples) for kind, samples in taken.items()}
