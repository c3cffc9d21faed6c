"""How long does blame by stage take, beside one run of the program in float64?

Run: python tests/benchmarks/bench_blame.py. The bound is 3 times the float64 run, for a program that is right. One
whose joint graph a pass has made wrong is timed beside it: each stage runs then, and the guilty pass and node are
searched. Both are of resnet18 at 64x64, forward and backward, from one run; compiling is not in it. Seconds are of this
process's processors, which what else runs does not change as much as a clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any

import torch
import torchvision
from torch.fx import Graph

from idbg import KernelDiff
from idbg.engine.kerneldiff import comparison, observed_run

BOUND = 3.0
SIZE = 64


def halved(graph: Graph) -> None:
    """The first constant that is multiplied with is another."""
    node = next(
        each for each in graph.nodes if each.target is torch.ops.aten.mul.Tensor and isinstance(each.args[1], float)
    )
    node.args = (node.args[0], node.args[1] * 1.01)


@contextmanager
def timed(owner: Any, name: str) -> Iterator[list[float]]:
    """Seconds of each call of a function while it lasts."""
    original, seconds = getattr(owner, name), list[float]()

    def call(*args: object, **kwargs: object) -> object:
        start = process_time()
        try:
            return original(*args, **kwargs)
        finally:
            seconds.append(process_time() - start)

    setattr(owner, name, call)
    try:
        yield seconds
    finally:
        setattr(owner, name, original)


def main() -> None:
    """Print each beside the float64 run."""
    torch.manual_seed(0)
    model, image = torchvision.models.resnet18(), torch.randn(2, 3, SIZE, SIZE)
    cases: dict[str, dict[str, Any]] = {"clean": {}, "a wrong joint pass": {"joint_custom_post_pass": halved}}
    for name, options in cases.items():
        with timed(observed_run.ObservedRun, "stages") as staged, timed(comparison, "run_float64") as float64:
            asked = KernelDiff(model, image, loss=lambda out: out.square().mean(), per_kernel=True, options=options)
            guilty = asked.compare().first_wrong_stage
        told = f"{guilty.stage}, {guilty.node}" if guilty else "nothing"
        bound = f" (at most {BOUND:g})" if not options else ""
        ratio = staged[0] / float64[0]
        print(f"{name}: stages {staged[0]:.2f} s, float64 {float64[0]:.2f} s, ratio {ratio:.2f}{bound}; blamed: {told}")


if __name__ == "__main__":
    main()
