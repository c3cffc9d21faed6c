"""What does comparing two tensors cost, beside reading them once? Run by hand, in no test run.

    python tests/benchmarks/bench_diff.py [MILLIONS]
    python tests/benchmarks/bench_diff.py --passes [--device cuda]

`--passes`: for tensors such as users compare, how many times as fast as torch's pass the C++ pass (of tensors in
memory) or the Triton pass (on a CUDA device) is, with what is left of it over all of them; a pass stays if that is
1.5 or more. Both are measured in turns in one process.

The floor is `torch.dot` of two float32 tensors (64M elements unless told), measured in the same run; every figure is
the best of several. "torch": before the kernel is compiled, or with no C++ compiler; "compiled": with it. On a CUDA
device the floor is one sum over both tensors. Extra memory is the peak of the process above what it was before.
"""

import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

from idbg.engine.kerneldiff.tensors import compare, native
from idbg.engine.kerneldiff.tensors.compare import compare_sides, compare_tensors, relative_rmse

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def best(call: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def line(what: str, value: float, unit: str, bound: float | None = None) -> None:
    judged = "" if bound is None else f"at most {bound:>7.1f}   {'ok' if value <= bound else 'TOO MUCH'}"
    print(f"{what:<56} {value:>9.2f} {unit:<4} {judged}")


def resident(field: str) -> float:
    """MB of `VmRSS` or of its peak `VmHWM`."""
    (found,) = (row for row in STATUS.read_text().splitlines() if row.startswith(field + ":"))
    return int(found.split()[1]) / 1024


def extra_memory(call: Callable[[], object]) -> float:
    call()
    CLEAR.write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def sides(elements: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    reference = torch.randn(elements // 8192, 8192, device=device)
    test = reference + 1e-6 * torch.randn_like(reference)
    return reference, test, reference.double() + 3e-7


def large(way: str, elements: int, verdict: float, device: str = "cpu") -> None:
    reference, test, exact = sides(elements, device)
    flat = reference.view(-1), test.view(-1)
    read = (lambda: flat[0].sum() + flat[1].sum()) if device == "cuda" else (lambda: torch.dot(*flat))
    floor = best(read, 30 if device == "cuda" else 10)
    line(f"{way}: the floor", floor * 1e3, "ms")
    figures: dict[str, float] = {}
    for what, call, bound in (
        ("two sides, the verdict", lambda: compare_tensors(reference, test, full=False), verdict),
        ("two sides, every metric", lambda: compare_tensors(reference, test), 3.0 if device == "cuda" else 20.0),
        ("three sides, the verdict", lambda: compare_sides(reference, test, exact, full=False), None),
        ("three sides, every metric", lambda: compare_sides(reference, test, exact), None),
        ("relative RMSE", lambda: relative_rmse(reference, test), None),
    ):
        call()
        figures[what] = best(call, 30 if device == "cuda" else 5)
        line(f"{way}: {what}", figures[what] / floor, "x", bound)
    for kind in ("the verdict", "every metric"):
        ratio = figures[f"three sides, {kind}"] / figures[f"two sides, {kind}"]
        line(f"{way}: three sides over two, {kind}", ratio, "x", 1.5)
    if device == "cpu":
        if elements <= 1 << 26:
            line(f"{way}: torch.testing.assert_close", best(lambda: close(reference, test), 1) / floor, "x")
        line(f"{way}: extra memory, two sides", extra_memory(lambda: compare_tensors(reference, test)), "MB", 16)
        line(f"{way}: extra memory, three", extra_memory(lambda: compare_sides(reference, test, exact)), "MB", 16)
        r, t = reference.double().view(-1), test.double().view(-1)
        wanted = (torch.dot(r, t) / (torch.dot(r, r).sqrt() * torch.dot(t, t).sqrt())).item()
        apart = abs((compare_tensors(reference, test).cosine or 0.0) - wanted)
        line(f"{way}: cosine, distance from float64's", apart * 1e9, "e-9", 1)


def close(reference: torch.Tensor, test: torch.Tensor) -> None:
    torch.testing.assert_close(test, reference, atol=1.0, rtol=0.0)


def small(way: str, bound: float | None) -> None:
    reference, test, exact = (side[:64, :64].contiguous() for side in sides(8192 * 64, "cpu"))
    for what, call, limit in (
        ("two sides", lambda: compare_tensors(reference, test), bound),
        ("two sides, the verdict", lambda: compare_tensors(reference, test, full=False), bound),
        ("three sides", lambda: compare_sides(reference, test, exact), None),
        ("torch.testing.assert_close", lambda: close(reference, test), None),
    ):
        line(f"{way}: 4,096 elements, {what}", best(call, 3000) * 1e6, "us", limit)


# Biases, activations, weights and logits of a transformer, and weights of a convolution
SHAPES = ((768,), (64, 64), (2, 128, 768), (768, 768), (3072, 768), (8, 1024, 768), (2, 128, 50257), (512, 512, 3, 3))
CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]] = {
    "two sides, the verdict": lambda reference, test, _: compare_tensors(reference, test, full=False),
    "two sides, every metric": lambda reference, test, _: compare_tensors(reference, test),
    "three sides, the verdict": lambda reference, test, exact: compare_sides(reference, test, exact, full=False),
    "three sides, every metric": compare_sides,
}


def in_turns(calls: Sequence[Callable[[], object]], times: int) -> list[float]:
    """The shortest time of each, called one after the other in each round."""
    rounds = [[best(call, 1) for call in calls] for _ in range(times + 1)]
    return [min(seconds) for seconds in zip(*rounds[1:], strict=True)]  # the first compiles, and fills caches


def passes(device: str) -> None:
    """Torch's pass over the C++ pass, or over the Triton pass with what it leaves to the C++ pass."""

    def by_torch(call: Callable[[], object]) -> None:
        native.enabled = False
        with patch.object(compare, "_cuda", lambda: None):
            call()
        native.enabled = True

    name = "Triton" if device == "cuda" else "C++"
    totals: dict[str, list[list[float]]] = {}
    for shape in SHAPES:
        for dtype in (torch.float32, torch.bfloat16):
            exact = torch.randn(shape, device=device, dtype=torch.float64)
            reference, test = ((exact + 3e-3 * torch.randn_like(exact)).to(dtype) for _ in range(2))
            for what, call in CALLS.items():
                whole = partial(call, reference, test, exact)
                found = in_turns((partial(by_torch, whole), whole), 5)
                totals.setdefault(what, []).append(found)
                label = f"{'x'.join(map(str, shape))} {str(dtype)[6:]}: {what}"
                line(label, found[0] / found[1], "x")
    for what, of_all in totals.items():
        torchs, others = map(sum, zip(*of_all, strict=True))
        print(f"{what:<56} {torchs / others:>9.2f} x    {name} {'stays' if torchs >= 1.5 * others else 'is to go'}")


def main(millions: int) -> None:
    elements = millions << 20
    print(f"{torch.get_num_threads()} threads, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    native.enabled = False
    large("torch", elements, 10.0)
    small("torch", None)
    native.enabled = True
    if not native.wait():
        print(f"not compiled: {native.problem()}")
        return
    large("compiled", elements, 6.0)
    small("compiled", 40.0)
    if torch.cuda.is_available():
        large("cuda", elements, 3.0, "cuda")


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("millions", type=int, nargs="?", default=64)
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    wanted = parser.parse_args()
    if wanted.passes:
        native.wait()
        passes(wanted.device)
    else:
        main(wanted.millions)
