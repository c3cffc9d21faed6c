"""How fast is this machine at most: a copy, a matmul, a launch? Measured once, and kept."""

import hashlib
import os
import platform
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec
import platformdirs
import torch

from idbg.bench.kernels import Peaks
from idbg.engine.bench.latency import seconds
from idbg.engine.bench.launches import Clock, launches

COPIED = 256 << 20  # bytes
TIMES = 5  # of which the best counts
LARGEST = 8192  # side of a matmul
LONG = 0.1  # seconds: a matmul that takes so long is large enough
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LAUNCHED = 100

_decode = msgspec.json.Decoder(Peaks).decode


def peaks(device: torch.device, folder: Path | None = None) -> Peaks:
    """The device's, from the user's cache (or `folder`) where they were measured before."""
    of = Peaks(
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        torch=str(torch.__version__),
        threads=0 if device.type == "cuda" else torch.get_num_threads(),
        precision=torch.get_float32_matmul_precision(),
    )
    name = hashlib.blake2b(msgspec.json.encode(of), digest_size=8).hexdigest()
    path = (folder or platformdirs.user_cache_path("idbg")) / f"peaks-{name}.json"
    try:
        return _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):  # there is none, or it is broken: measured anew
        found = _measured(of, device)
    _keep(found, path)
    return found


def _keep(found: Peaks, path: Path) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(found))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)  # no room, or not ours to write: measured anew the next time


def _measured(of: Peaks, device: torch.device) -> Peaks:
    with torch.no_grad():
        products = {str(dtype).removeprefix("torch."): _matmul(device, dtype) for dtype in DTYPES}
        return msgspec.structs.replace(
            of,
            copy_bytes_per_s=_copy(device),
            matmul_flops_per_s={dtype: speed for dtype, speed in products.items() if speed is not None},
            launch_us=_empty_launches(device),
        )


def _best(call: Callable[[], object]) -> float:
    call()
    return min(seconds(call) for _ in range(TIMES))


def _copy(device: torch.device) -> float | None:
    """Bytes read and written in a second; None where there is no room for it."""
    try:
        source = torch.ones(COPIED, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
    except RuntimeError:  # torch's OutOfMemoryError, and what it raises on a CPU
        return None
    return 2 * COPIED / _best(lambda: target.copy_(source))


def _matmul(device: torch.device, dtype: torch.dtype) -> float | None:
    """FLOP/s of the largest square product that does not take long; None where the dtype has none."""
    side, best = 256, 0.0
    while side <= LARGEST:
        try:
            one = torch.ones(side, side, dtype=dtype, device=device)
            took = _best(lambda one=one: one @ one)  # type: ignore[misc]
        except RuntimeError:  # no room, or no such kernel
            break
        best = max(best, 2 * side**3 / took)
        if took > LONG / 8:  # twice the side takes eight times as long
            break
        side *= 2
    return best or None


def _empty_launches(device: torch.device) -> dict[str, float]:
    """Microseconds of a launch with next to no work, by the kind of kernel."""
    x = torch.ones(8, 8, device=device)
    compiled = torch.compile(lambda x: torch.mm(x, x).sin())
    with launches() as found:
        compiled(x)
        clock = Clock(range(len(found.all)) if device.type == "cuda" else ())
        with found.through(clock):
            for _ in range(LAUNCHED):
                compiled(x)
    taken: dict[str, list[float]] = defaultdict(list)
    for number, microseconds in clock.read():
        taken[found.all[number].kind].append(microseconds)
    return {kind: median(samples) for kind, samples in taken.items()}


def _processor() -> str:
    """The CPU's name where Linux tells it."""
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (row.partition(":")[2].strip() for row in rows if row.startswith("model name"))
    return next(named, platform.machine())
