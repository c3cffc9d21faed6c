"""What memory does it take to find the guilty kernel, beside the model's own weights? Run by hand, in no test run.

    python tests/benchmarks/bench_blame_memory.py [MEGABYTES] [cuda]

A stack of square linear layers of so many megabytes (512 unless told) in float32, batch 8, so that nearly all of it is
weights. Each figure is the peak above what is held before, over the bytes of the weights: of the program itself,
compiled; of the same while its launches are observed, forward and backward; of each side of a comparison; of all of a
comparison with its kernels and stages. On a CPU it is the process's resident memory, after a warm-up in which torch's
compiler has grown; on CUDA the allocator's. "at most" is what issue 12 asks of the device: no second copy of the
weights, so less than 1.0 above the program's own, and a gradient of each weight where there is a backward.
"""

import gc
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.run import run_eager, run_float64
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload
from tests.harness.observed_launches import observe_model

STATUS = Path("/proc/self/status")
WIDTH, BATCH = 2048, 8


def resident() -> int:
    """Bytes of this process's memory now."""
    (found,) = (row for row in STATUS.read_text().splitlines() if row.startswith("VmRSS:"))
    return int(found.split()[1]) * 1024


def peak_above(call: Callable[[], object], device: str) -> int:
    """Bytes that the call takes at its peak above what was held before."""
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return int(torch.cuda.max_memory_allocated() - before)
    before, peak, ended = resident(), 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(0.002):
            peak = max(peak, resident())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        call()
    finally:
        ended.set()
        sampler.join()
    return peak - before


def model_of(megabytes: int, device: str) -> tuple[nn.Module, int]:
    """The model, and the bytes of its weights."""
    layers = max(1, megabytes * 2**20 // (WIDTH * WIDTH * 4))
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers))).to(device)
    return model, sum(each.nbytes for each in model.parameters())


def loss(out: Tensor) -> Tensor:
    return out.square().mean()


def line(what: str, taken: int, weights: int, bound: float | None = None) -> bool:
    ratio = taken / weights
    judged = "" if bound is None else f"at most {bound:.1f}   {'ok' if ratio <= bound else 'TOO MUCH'}"
    print(f"{what:<58} {ratio:>6.2f} x the weights   {judged}", flush=True)
    return bound is None or ratio <= bound


def sides(model: nn.Module, x: Tensor, weights: int, device: str) -> bool:
    subject = Subject(Workload(model, (x,)))
    fine = line("eager, and what puts its state back", peak_above(lambda: run_eager(subject), device), weights)
    return line("float64", peak_above(lambda: run_float64(subject), device), weights, 0.9) and fine


def main(megabytes: int, device: str) -> bool:
    small, _ = model_of(1, device)
    x = torch.randn(BATCH, WIDTH, device=device)
    KernelDiff(small, (x,), loss=loss, per_kernel=True).compare()  # torch's compiler grows once
    model, weights = model_of(megabytes, device)
    print(f"weights: {weights / 2**20:.0f} MB on {device}")
    compiled = torch.compile(model)
    with torch.no_grad():
        own = peak_above(lambda: compiled(x), device)
        line("the compiled program", own, weights)
        fine = line("its launches observed", peak_above(lambda: observe_model(model, (x,)), device), weights, 0.9)
    fine &= sides(model, x, weights, device)

    def stepped() -> None:
        model.zero_grad(set_to_none=True)
        observe_model(model, (x,), loss=loss)
        model.zero_grad(set_to_none=True)

    fine &= line("forward and backward observed (with gradients: 1.0)", peak_above(stepped, device), weights, 1.9)
    whole = peak_above(lambda: KernelDiff(model, (x,), per_kernel=True).compare(), device)
    line("a whole comparison, per kernel", whole, weights)
    return fine


if __name__ == "__main__":
    sizes = [int(word) for word in sys.argv[1:] if word.isdigit()]
    sys.exit(not main((sizes or [512])[0], "cuda" if "cuda" in sys.argv else "cpu"))
