"""Is what was planted into the outputs, the gradients and the buffers of a side caught, and by its rule?"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from idbg import KernelDiff
from tests.harness.sides import Outputs, Spoil, only, spoiled, wide
from tests.harness.traced import is_traced

pytestmark = pytest.mark.usefixtures("seeded")


def zero_last_column(outputs: Outputs) -> None:
    outputs[0][:, -1] = 0


def flip_one(outputs: Outputs) -> None:
    outputs[0][7, 9] *= -1


def shift_one_slightly(outputs: Outputs) -> None:
    outputs[0][7, 9] += 1e-3 * outputs[0].abs().max()


def add_infinity(outputs: Outputs) -> None:
    outputs[0][0, 0] = torch.inf


def drop_the_tail(outputs: Outputs) -> None:
    outputs[0][-1, 48:] = 0


def wrong_tile(outputs: Outputs) -> None:
    outputs[0][16:32, 16:32] *= 1.001


def shorten(outputs: Outputs) -> Outputs:
    return [outputs[0][:-1], outputs[1]]


def narrow(outputs: Outputs) -> Outputs:
    return [outputs[0].bfloat16(), outputs[1]]


def swap(outputs: Outputs) -> Outputs:
    return outputs[::-1]


FAULTS: dict[Spoil, str] = {
    zero_last_column: "column",
    flip_one: "maximum",
    shift_one_slightly: "maximum",
    add_infinity: "inf",
    drop_the_tail: "row",
    wrong_tile: "tile",
    shorten: "shape",
    narrow: "dtype",
    swap: "rmse",
}


@pytest.mark.parametrize("spoil", FAULTS, ids=lambda spoil: spoil.__name__)
def test_a_planted_fault_is_caught_by_its_rule(spoil: Spoil) -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x @ x.t()).sin(), (x @ x.t()).cos()

    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    report = KernelDiff(model, x, test=spoiled(spoil)).compare()
    assert report.verdict == "failed" and report.mode == "float64"
    first, second = report.outputs
    assert FAULTS[spoil] in first.failed_by, first.failed_by
    assert second.passed or spoil is swap


def test_a_test_as_wrong_as_eager_passes_and_one_ten_times_worse_fails() -> None:
    x = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).bfloat16()

    def noisy(size: float) -> Spoil:
        noise = torch.randn(256, 256, generator=torch.Generator().manual_seed(1))
        return lambda outputs: [(outputs[0].float() * (1 + size * noise)).bfloat16()]

    eps = torch.finfo(torch.bfloat16).eps
    assert KernelDiff(wide, x, test=spoiled(noisy(eps / 4))).compare().passed
    assert "rmse" in only(KernelDiff(wide, x, test=spoiled(noisy(10 * eps))).compare()).failed_by
    assert KernelDiff(wide, x, test=spoiled(noisy(10 * eps)), k=1000).compare().passed


def test_a_wrong_gradient_is_caught_by_name() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Tensor:
            return gradients[0] * (1.001 if is_traced() else 1)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(Doubled.apply(self.first(x)))  # type: ignore[no-any-return, no-untyped-call]

    report = KernelDiff(Model(), torch.randn(4, 8), test="aot_eager", loss=lambda out: out.square().mean()).compare()
    failed = {diff.name for diff in report.gradients if not diff.passed}
    assert failed == {"grad(first.weight)", "grad(first.bias)"}
    assert {diff.name for diff in report.outputs} == {"out", "loss"} and all(diff.passed for diff in report.outputs)


def test_a_buffer_that_the_test_leaves_alone_is_caught() -> None:
    def forgetful(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        def run(*args: Tensor) -> Any:
            before = [arg.detach().clone() for arg in args]
            outputs = gm(*args)
            with torch.no_grad():
                for arg, value in zip(args, before, strict=True):
                    arg.copy_(value)
            return outputs

        return run

    report = KernelDiff(nn.BatchNorm1d(4), torch.randn(8, 4), test=forgetful).compare()
    failed = {diff.name: diff.failed_by for diff in report.outputs if not diff.passed}
    assert {"running_mean (after)", "running_var (after)", "num_batches_tracked (after)"} == set(failed)
    assert failed["num_batches_tracked (after)"] == ("exact",)
