"""What rounding explains passes, and nothing else does: no stuck count, no frozen average, no lost gradient."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from idbg import KernelDiff
from idbg.engine.compat import fx, gpu
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding, added_up
from idbg.engine.kerneldiff.sides.resampling import NOTE, not_computed
from idbg.reports.diff import summary
from idbg.schema.diff import DiffReport
from idbg.schema.remarks import Remark


def planted(model: nn.Module, x: Tensor, wrong: Callable[[Any], Any], monkeypatch: Any, **asked: Any) -> DiffReport:
    """The report on a compiler that makes `wrong(model)` of the model."""
    monkeypatch.setattr(torch, "compile", lambda given, **_: wrong(given))
    return KernelDiff(model, (x,), test="aot_eager", **asked).compare()


def failed(report: DiffReport) -> list[str]:
    return [each.name for each in (*report.outputs, *report.gradients) if not each.passed]


def frozen(*names: str) -> Callable[[Any], Any]:
    def made(model: Any) -> Any:
        def call(x: Tensor) -> Tensor:
            before = {name: getattr(model, name).clone() for name in names}
            out = model(x)
            for name, value in before.items():
                getattr(model, name).copy_(value)
            return out

        return call

    return made


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps, self.total = nn.Buffer(torch.zeros(())), nn.Buffer(torch.full((), 1e5))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.total += x.sum()
        return x * 2


def test_a_count_that_never_moves_fails_beside_a_total_that_is_much_larger(monkeypatch: pytest.MonkeyPatch):
    assert failed(planted(Steps(), torch.randn(8), frozen("steps"), monkeypatch)) == ["steps (after)"]


@pytest.mark.parametrize("name", ["running_mean", "running_var"])
def test_a_frozen_average_fails_beside_a_large_variance(name: str, monkeypatch: pytest.MonkeyPatch):
    x = 316 * torch.randn(64, 96, generator=torch.Generator().manual_seed(0)) + 3
    report = planted(nn.BatchNorm1d(96).train(), x, frozen(name), monkeypatch)
    assert failed(report) == [f"{name} (after)"]


def test_a_part_of_a_biases_gradient_that_is_lost_fails_in_bfloat16(monkeypatch: pytest.MonkeyPatch):
    class Lost(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, bias: Tensor) -> Tensor:
            return bias.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Tensor:
            found = gradients[0].clone()
            found[:256] = 0
            return found

    torch.manual_seed(0)
    layer, x = nn.Linear(512, 512).bfloat16(), torch.randn(64, 512).bfloat16()
    report = planted(
        layer, x, lambda model: lambda x: F.linear(x, model.weight, Lost.apply(model.bias)), monkeypatch, backward=True
    )
    assert failed(report) == ["grad(bias)"]


def test_sums_that_cancel_pass_as_far_off_as_rounding_leaves_them(monkeypatch: pytest.MonkeyPatch):
    """Eager's var_mean adds up in double; Inductor's in float32 is 3.5e-8 off, where nothing is left but that."""
    x = torch.randn(64, 96, generator=torch.Generator().manual_seed(1))
    x = x - x.mean(0)

    class Moments(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return torch.var_mean(x, 0)

    def plain(_: Any) -> Any:
        return lambda x: (x.var(0), sum(x.flip(0)) / len(x))

    report = planted(Moments(), x, plain, monkeypatch)
    assert not failed(report) and report.outputs[1].note == NOTE, summary(report)
    assert all(each.why_not == NOTE for each in report.outputs[1].criteria if each.exceeded)
    for lost in (lambda x: (x.var(0), 1e-6 + x.mean(0)), lambda x: (x.var(0), torch.zeros(96))):
        assert "out[1]" in failed(planted(Moments(), x, lambda _, lost=lost: lost, monkeypatch))


def test_what_was_not_computed_is_not_rounding():
    exact = torch.linspace(1, 2, 8, dtype=torch.float64) * 1e-9
    own = [(exact * (1 + 0.5 * at)).float() for at in (-1, 1, 2)]
    zeros, before = torch.zeros(8), torch.full((8,), 5e-9)
    assert not_computed(own[2], zeros, exact, own, None)
    assert not_computed(own[2], before, exact, own, before)
    assert not not_computed(own[2], own[0], exact, own, before)
    assert not not_computed(own[2], zeros, exact * 1e-9, own, None), "zero is nearer to it than eager"


def test_other_roundings_are_of_the_size_of_roundings_and_move_nothing_else():
    x = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    count, statistics = torch.zeros(3), torch.zeros(4)
    with PerturbedRounding(0):
        product, view, copy, whole = x * 1.1, x.view(64, 64), x.clone(), torch.arange(4)
        count += 1
        F.batch_norm(x.view(-1, 4), statistics, torch.ones(4), training=True)
        low = x.bfloat16() * 1
        infinite = [torch.full((64,), -torch.inf, dtype=each) * 1 for each in (torch.float32, torch.bfloat16)]
    assert 0 < (product - x * 1.1).abs().max() <= 2.0**-22 * x.abs().max()
    assert torch.equal(view.view(-1), x) and torch.equal(copy, x) and torch.equal(whole, torch.arange(4))
    assert (count - 1).abs().max() < 1e-6
    assert statistics.abs().max() > 1e-4, "a batch norm writes its statistics where it always does"
    assert 0.03 < (low != x.bfloat16()).double().mean() < 0.1
    assert all(each.isneginf().all() for each in infinite)


def test_how_many_numbers_are_added_up():
    x, aten = torch.ones(8, 6, 5), torch.ops.aten
    assert added_up(aten.add.Tensor, (x, x), {}) == 1
    assert added_up(aten.sum.dim_IntList, (x, [0, -1]), {}) == 40
    assert added_up(aten.sum.default, (x,), {}) == 240
    assert added_up(aten.var_mean.correction, (x, [1]), {}) == 6
    assert added_up(aten.native_batch_norm.default, (x,), {}) == 40


def test_a_branch_rounds_otherwise_too():
    def model(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin().sin(), lambda x: x.cos(), (x,))

    x = torch.rand(512)
    with torch.compiler.set_stance("force_eager"), PerturbedRounding(0):
        moved = (model(x) - x.sin().sin()).abs().max()
    assert 0 < moved < 1e-6


@pytest.mark.parametrize("half", [0, 1 << 12], ids=["cut off", "rounded"])
def test_tf32_counts_as_rounding_where_a_convolution_may_be_computed_in_it(
    half: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Rounding(TorchDispatchMode):
        """Convolutions of operands with 10 bits of mantissa, as tensor cores compute them."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if fx.op_name(func) == "convolution":
                args = [(each.view(torch.int32) + half & -(1 << 13)).view(torch.float32) for each in args[:2]] + [
                    *args[2:]
                ]
            return func(*args, **(kwargs or {}))

    def wrong(model: Any) -> Any:
        def call(x: Tensor) -> Any:
            with Rounding():
                return model(x)

        return call

    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval(), torch.randn(2, 3, 16, 16)
    assert failed(planted(model, x, wrong, monkeypatch)) == ["out"]
    setting = "torch.backends.cudnn.conv.fp32_precision"
    allowed = {"convolution": setting}
    monkeypatch.setattr(gpu, "tf32_setting", lambda op, device: allowed.get(op, ""))
    report = planted(model, x, wrong, monkeypatch)
    assert not failed(report) and Remark("tf32", setting) in report.notes
    doubled = planted(model, x, lambda given: lambda x: given(x) * 1.02, monkeypatch)
    assert failed(doubled) == ["out"], "no more than TF32's 10 bits are allowed"


@pytest.fixture
def _precision() -> Iterator[None]:
    before = torch.backends.cudnn.conv.fp32_precision  # type: ignore[attr-defined]
    yield
    torch.backends.cudnn.conv.fp32_precision = before  # type: ignore[attr-defined]


@pytest.mark.usefixtures("_precision")
def test_on_which_device_and_by_which_setting_an_op_may_compute_in_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    monkeypatch.setattr(gpu, "in_use", lambda: False)
    torch.backends.cudnn.conv.fp32_precision = "tf32"  # type: ignore[attr-defined]
    assert gpu.tf32_setting("convolution", cuda) == "torch.backends.cudnn.conv.fp32_precision"
    assert gpu.tf32_setting("convolution", cpu) == gpu.tf32_setting("sin", cuda) == ""
    assert gpu.tf32_setting("mm", cuda) == "", "products are exact unless somebody allows it"
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # type: ignore[attr-defined]
    assert gpu.tf32_setting("convolution_backward", cuda) == ""
