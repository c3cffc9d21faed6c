"""Measure how fast this machine is at most: a copy, a matrix product, an empty launch. The result is cached."""

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median

import msgspec
import torch

from idbg.config import places
from idbg.engine.bench.latency import seconds
from idbg.engine.bench.launches import Clock, launches
from idbg.engine.bench.resources import OtherProcesses
from idbg.engine.compat import gpu
from idbg.engine.program.machine import processor_name
from idbg.schema.kernel_times import Peaks
from idbg.whole_file import write_whole

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
    """The device's peaks, from the user's cache (or `folder`), or measured now and stored there. `tell` is called with
    which of both it is.
    """
    request = unmeasured(device)
    path = place(request, folder)
    try:
        cached = _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):  # there is none, or it is broken: measured anew
        tell("measuring the machine's peaks")
        measured = _measured(request, device)
    else:
        tell("the machine's peaks, as measured before")
        return cached
    if measured.copy_bytes_per_s and (measured.others or 0) <= BUSY:  # or too low a peak would stay for good
        with contextlib.suppress(OSError):  # no room, or no permission: it is measured again next time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, msgspec.json.encode(measured))
    return measured


def unmeasured(device: torch.device) -> Peaks:
    """The record of this device's peaks before anything is measured: what they are of, and how the machine is set."""
    return Peaks(
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name(),
        torch=str(torch.__version__),
        threads=0 if device.type == "cuda" else torch.get_num_threads(),
        precision=torch.get_float32_matmul_precision(),
    )


def place(of: Peaks, folder: Path | None = None) -> Path:
    """The file for these peaks, named for the device, torch, threads and precision."""
    key = "|".join((of.device, of.torch, str(of.threads), of.precision))
    name = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return (folder or places.cache()) / f"peaks-{name}.json"


def _measured(request: Peaks, device: torch.device) -> Peaks:
    with torch.no_grad():
        empty = _empty_launches(device)  # first: it compiles
        busy = OtherProcesses()
        copied = _copy(device)
        products = {str(dtype).removeprefix("torch."): _matmul(device, dtype) for dtype in DTYPES}
    return msgspec.structs.replace(
        request,
        copy_bytes_per_s=copied,
        matmul_flops_per_s={dtype: speed for dtype, speed in products.items() if speed is not None},
        launch_us=empty,
        others=None if device.type == "cuda" else busy.share(),
    )


def _best(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several blocks of calls; blocks are long enough to hide the wait for a GPU."""
    call()
    block = max(1, ceil(SHORT / seconds(call)))
    return min(seconds(call, block) for _ in range(TIMES))


def _copy(device: torch.device) -> float | None:
    """Bytes read and written per second; None if there is no room for it."""
    try:
        source = torch.ones(COPIED, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
    except RuntimeError:  # torch's OutOfMemoryError, and what it raises on a CPU
        return None
    return 2 * COPIED / _best(lambda: target.copy_(source))


def _matmul(device: torch.device, dtype: torch.dtype) -> float | None:
    """FLOP/s of the fastest square product that does not take long; None if the dtype has none."""
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
    """Microseconds of a launch with almost no work, by the kind of kernel, for the kinds that are available here."""
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
        times: dict[str, list[float]] = defaultdict(list)
        for number, microseconds in clock.read():
            times[launched.all[number].kind].append(microseconds)
    return {kind: median(samples) for kind, samples in times.items()}
