"""What does timing each kernel cost the program? Run by hand, in no test run.

    python tests/benchmarks/bench_kernel_times.py [KERNELS] [RUNS]

Bound: the whole takes under 5 % longer at 100 us a kernel. Products in a chain, of a size that takes about so long;
runs with the timing and without alternate in one process, and of each the best counts. On a CUDA device too, where
there is one. The last line is what the timing of one launch costs the processor.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from idbg.engine.bench.kernels import time_kernels
from idbg.engine.bench.latency import seconds
from idbg.engine.bench.launches import Clock
from idbg.schema.kernel_times import KernelTimes

WANTED = 100e-6  # seconds a kernel
BOUND = 5.0  # percent


def side(device: str) -> int:
    """Of a square product that takes as long as wanted."""
    for size in range(64, 8192, 16):
        one = torch.randn(size, size, device=device)
        torch.mm(one, one)
        if min(seconds(lambda one=one: torch.mm(one, one), 20) for _ in range(5)) >= WANTED:
            return size
    return 8192


def measured(device: str, kernels: int, runs: int, cache: Path) -> KernelTimes:
    size = side(device)
    weights = [torch.randn(size, size, device=device) / size**0.5 for _ in range(kernels)]

    def chain(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = x @ weight
        return x

    return time_kernels(chain, (torch.randn(size, size, device=device),), runs=runs, cache=cache)


def line(what: str, value: float, unit: str, bound: float | None = None) -> None:
    judged = "" if bound is None else f"at most {bound:>7.1f}   {'ok' if value <= bound else 'TOO MUCH'}"
    print(f"{what:<56} {value:>9.2f} {unit:<4} {judged}")


def overhead(clock: Clock, times: int = 100_000) -> float:
    def nothing() -> None: ...

    began = time.perf_counter()
    for _ in range(times):
        nothing()
    between = time.perf_counter()
    for _ in range(times):
        clock(0, nothing)
    return (time.perf_counter() - between - (between - began)) / times


def main(kernels: int, runs: int) -> None:
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        for device in ("cpu", *(["cuda"] * torch.cuda.is_available())):
            found = measured(device, kernels, runs, Path(folder))
            plain, hooked = min(found.samples_us), min(found.hooked_samples_us)
            line(f"{device}: a kernel, of {len(found.kernels)}", plain / len(found.kernels), "us")
            line(f"{device}: the whole", plain, "us")
            line(f"{device}: with each kernel timed", hooked, "us")
            line(f"{device}: longer by", 100 * (hooked / plain - 1), "%", BOUND)
            line(f"{device}: longer by, the medians", 100 * found.perturbation, "%")
            line(f"{device}: in no kernel", 100 * found.missed_us / found.total_us, "%")
    line("timing one launch", 1e6 * overhead(Clock()), "us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 200)
