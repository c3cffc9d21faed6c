"""How long does blame by stage take, beside one run of the program in float64?

Run: python tests/benchmarks/bench_blame.py. The bound is 3 times the float64 run, for a program that is right. One whose
joint graph a pass has made wrong is timed beside it: each stage runs then, and the guilty pass and node are searched.
Both are of resnet18 at 64x64, forward and backward, from one run; compiling is not in it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch
import torchvision
from torch.fx import Graph

from idbg.engine.kerneldiff import blame
from idbg.engine.kerneldiff.api import KernelDiff

BOUND = 3.0
SIZE = 64


def halved(graph: Graph) -> None:
    """The first constant that is multiplied with is another."""
    node = next(
        each for each in graph.nodes if each.target is torch.ops.aten.mul.Tensor and isinstance(each.args[1], float)
    )
    node.args = (node.args[0], node.args[1] * 1.01)


@contextmanager
def timed() -> Iterator[list[float]]:
    """Seconds that the stages took, of each comparison while it lasts."""
    original, seconds = blame.Observed.stages, list[float]()

    def stages(self: blame.Observed, *args: object, **kwargs: object) -> object:
        start = perf_counter()
        try:
            return original(self, *args, **kwargs)  # type: ignore[arg-type]
        finally:
            seconds.append(perf_counter() - start)

    blame.Observed.stages = stages  # type: ignore[assignment, method-assign]
    try:
        yield seconds
    finally:
        blame.Observed.stages = original  # type: ignore[method-assign]


def main() -> None:
    """Print each beside the float64 run."""
    torch.manual_seed(0)
    model, image = torchvision.models.resnet18(), torch.randn(2, 3, SIZE, SIZE)
    for name, options in (("clean", {}), ("a wrong joint pass", {"joint_custom_post_pass": halved})):
        with timed() as seconds:
            asked = KernelDiff(model, image, loss=lambda out: out.square().mean(), per_kernel=True, options=options)
            report = asked.compare()
        float64 = next(side.seconds for side in report.sides if side.name == "float64") or 0.0
        guilty = report.guilty_stage
        told = f"{guilty.stage}, {guilty.node}" if guilty else "nothing"
        bound = f" (at most {BOUND:g})" if not options else ""
        print(
            f"{name}: stages {seconds[0]:.2f} s, float64 {float64:.2f} s, ratio {seconds[0] / float64:.2f}{bound}; "
            f"blamed: {told}"
        )


if __name__ == "__main__":
    main()
