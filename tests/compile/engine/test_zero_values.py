"""Values that are zero in mathematics are beside what rounding leaves of them, in words and in no relative figure."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import judge_launch
from idbg.engine.kerneldiff.steps.training import TensorRow
from idbg.engine.kerneldiff.steps.verdict import StepJudge
from idbg.engine.kerneldiff.tensors.compare import TensorDistance
from idbg.reports.diff import as_json, summary
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.views.tensors import metrics


class Attention(nn.Module):
    """The gradient of the key's bias is zero: it adds one number to all scores of a query."""

    scale, wrong = 1.0, 0.0

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        bias = self.k.bias * 1
        if self.wrong:
            bias.register_hook(self.wrong.__add__)
        k = F.linear(x, self.k.weight, bias)
        return torch.softmax((self.q(x) * self.scale) @ k.transpose(-1, -2) / self.scale, -1) @ self.v(x)


def compared(monkeypatch: pytest.MonkeyPatch, wrong: float = 0.0) -> DiffReport:
    """The report on a compiler that rounds otherwise, with `wrong` added to the gradient of the key's bias."""

    def compiled(model: Any, **_: object) -> Callable[[Tensor], Tensor]:
        def call(x: Tensor) -> Tensor:
            with monkeypatch.context() as changed:
                changed.setattr(Attention, "scale", 3.0)
                changed.setattr(Attention, "wrong", torch.tensor(wrong) if wrong else 0.0)
                out: Tensor = model(x)
            return out

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    torch.manual_seed(0)
    return KernelDiff(Attention(), torch.randn(4, 16, 32), test="aot_eager", backward=True).compare()


def key_bias(report: DiffReport) -> TensorDiff:
    return next(each for each in report.gradients if each.name == "grad(k.bias)")


def test_a_gradient_that_is_zero_but_for_rounding_has_words_and_no_relative_figure(monkeypatch: pytest.MonkeyPatch):
    report = compared(monkeypatch)
    diff = key_bias(report)
    assert diff.passed and diff.max_abs, summary(report)
    assert "zero but for rounding: RMS " in summary(report)
    figures = dict(metrics(diff))
    assert "|d| / |ref| max, mean" not in figures and "max ulp" not in figures
    gradients: Any = as_json(report)["gradients"]
    (json,) = (each for each in gradients if each["name"] == "grad(k.bias)")
    assert (json["relative_rmse"], json["max_rel"], json["cosine"]) == (None, None, None)
    assert "zero but for rounding" in json["note"] and "zero but for rounding" in str(report._repr_html_())
    other = next(each for each in report.gradients if each.name == "grad(q.bias)")
    assert other.relative_rmse and not other.note


def test_what_is_zero_in_mathematics_and_far_from_it_fails(monkeypatch: pytest.MonkeyPatch):
    report = compared(monkeypatch, 0.01)
    assert key_bias(report).failed and key_bias(report).relative_rmse is None
    assert "zero but for rounding" in summary(report)


def noise(size: float, seed: int) -> Tensor:
    return size * torch.randn(4096, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("size", "is_right"), [(2e-8, True), (1e-3, False)])
def test_the_error_of_a_launch_is_relative_to_what_rounding_leaves_of_zero(size: float, is_right: bool):
    reference = ReferenceValue(noise(1e-17, 0), noise(1e-8, 1).float())
    found = judge_launch(noise(size, 2).float(), reference, lambda times: [])
    assert (found.excess <= 1) is is_right
    assert found.error.rmse == pytest.approx(size / 1e-8, rel=0.1)
    assert found.eager.rmse == pytest.approx(1.0)


def test_a_launch_of_which_eager_is_exact_by_luck_is_relative_to_resampled_rounding():
    exact = noise(1e-17, 0)
    found = judge_launch(noise(1e-8, 2).float(), ReferenceValue(exact, exact.float()), lambda times: [noise(1e-8, 3)])
    assert found.excess <= 1 and found.error.rmse == pytest.approx(1.0, rel=0.1)


def test_steps_of_training_leave_out_what_is_zero_but_for_rounding():
    judge = StepJudge("test", "eager", "float64 moved", 3.0)
    zero = TensorRow("gradient", torch.float32, 64, {side: TensorDistance(1e-9, 1e-17) for side in ("test", "eager")})
    other = TensorRow("gradient", torch.float32, 64, {side: TensorDistance(1e-9, 1.0) for side in ("test", "eager")})
    assert [each.tensor for each in judge.judged(1, {"k.bias": zero, "q.bias": other}, None)] == ["q.bias"]
