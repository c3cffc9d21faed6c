"""An element that rounding may put on either side of a threshold is right on both, and no other element is."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.run import _cotangent
from idbg.engine.kerneldiff.sides.thresholds import AtThresholds, Site
from idbg.reports.diff import summary
from idbg.schema.diff import DiffReport


class Beside(nn.Module):
    """A ReLU of numbers that were rounded beside 1: in bfloat16 by about 0.001."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(32, 16), nn.Linear(16, 32)

    def before(self, x: Tensor) -> Tensor:
        return (self.a(x) + 1) - 1

    def forward(self, x: Tensor) -> Tensor:
        return self.b(F.relu(self.before(x)))


def program() -> tuple[Beside, Tensor]:
    """In eager every element is on float64's side."""
    torch.manual_seed(5)
    return Beside().bfloat16(), torch.randn(32, 32).bfloat16()


def nearest(least: float) -> tuple[int, int]:
    """The element on the lower side that is nearest to the threshold in float64, from this distance on."""
    model, x = program()
    apart = -model.double().before(x.double())
    at = int(torch.where(apart > least, apart, torch.inf).argmin())
    return at // 16, at % 16


def compared(wrong: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> DiffReport:
    """The report on a compiler that makes `wrong(model)` of the model."""
    monkeypatch.setattr(torch, "compile", lambda given, **_: wrong(given))
    model, x = program()
    return KernelDiff(model, (x.requires_grad_(),), test="aot_eager", backward=True).compare()


def on_the_other_side(row: int, column: int) -> Callable[[Any], Any]:
    def made(model: Any) -> Any:
        def call(x: Tensor) -> Tensor:
            before = model.before(x)
            across = torch.zeros_like(before, dtype=torch.bool)
            across[row, column] = True
            return model.b(torch.where(across, before - before.detach() + 1e-4, F.relu(before)))

        return call

    return made


def failed(report: DiffReport) -> list[str]:
    return [each.name for each in (*report.outputs, *report.gradients) if each.failed]


def test_an_element_beside_a_threshold_is_right_on_both_sides(monkeypatch: pytest.MonkeyPatch):
    report = compared(on_the_other_side(*nearest(0)), monkeypatch)
    assert not failed(report), summary(report)
    assert "rounding decides on which side of a threshold (a ReLU, a comparison) 1 element is" in summary(report)


def test_an_element_that_no_rounding_moves_across_a_threshold_is_wrong(monkeypatch: pytest.MonkeyPatch):
    assert "grad(args[0])" in failed(compared(on_the_other_side(*nearest(0.012)), monkeypatch))


class Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, moved: Tensor) -> Tensor:
        ctx.moved = moved
        return weight.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] + ctx.moved, None


def test_what_only_one_gradient_has_of_an_element_on_the_other_side_is_wrong(monkeypatch: pytest.MonkeyPatch):
    """The gradient of the weight is as with the element on the other side, and no other gradient is."""
    gradients = []
    for made in (lambda model: model, on_the_other_side(*nearest(0))):
        model, x = program()
        out = made(model)(x)
        out.backward(_cotangent(out))
        assert model.a.weight.grad is not None
        gradients.append(model.a.weight.grad)

    def only_the_weight(model: Any) -> Any:
        def call(x: Tensor) -> Tensor:
            weight = Added.apply(model.a.weight, gradients[1] - gradients[0])
            return model.b(F.relu(F.linear(x, weight, model.a.bias) + 1 - 1))

        return call

    assert failed(compared(only_the_weight, monkeypatch)) == ["grad(a.weight)"]


OPS: dict[str, tuple[Callable[[Tensor], Tensor], tuple[float, ...]]] = {
    "relu": (F.relu, (0.0,)),
    "leaky_relu": (F.leaky_relu, (0.0,)),
    "hardtanh": (F.hardtanh, (-1.0, 1.0)),
    "clamp": (lambda x: x.clamp(max=0.5), (0.5,)),
    "gt": (lambda x: x > 0.25, (0.25,)),
    "maximum": (lambda x: torch.maximum(x, torch.full_like(x, 0.75)), (0.75,)),
}


@pytest.mark.parametrize("op", OPS)
def test_an_element_is_moved_across_each_threshold_of_an_op(op: str):
    run, bounds = OPS[op]
    for at, bound in enumerate(bounds):
        x = torch.tensor([[3.0, bound + 1e-3, -3.0]], dtype=torch.float64)
        with AtThresholds() as seen:
            run(x)
        site = Site(op, (1, 3), 0, at)
        assert seen.seen[site][0] == 1
        assert seen.apart[site][0].item() == pytest.approx(1e-3)
        with AtThresholds(moved={site: [1]}):
            run(x)
        assert x[0].tolist() == pytest.approx([3.0, bound - 1e-3, -3.0])
