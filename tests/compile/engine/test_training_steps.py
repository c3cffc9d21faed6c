"""A program() that is a whole training step, an optimizer's own step, and what they leave as it was."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.cli import main
from idbg.engine.program.load import differentiates, failed_to_differentiate
from idbg.schema.remarks import NoFloat64

STEP = """
import torch
from torch import nn


def program():
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, (torch.randn(4, 8),)
"""


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["diff", "run"])
def test_a_program_that_is_a_training_step_runs(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.py").write_text(STEP)
    assert main([verb, "step.py", "--backend", "inductor"]) == 0


def made(kind: str, moments: bool) -> tuple[nn.Linear, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(8, 8)
    optimizer: torch.optim.Optimizer = (
        torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        if kind == "SGD"
        else torch.optim.AdamW(model.parameters(), 0.01)
    )
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    if moments:
        optimizer.step()
    return model, optimizer


def plain(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
    return gm.forward


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_an_optimizers_step_is_compared_by_what_it_changes(kind: str, moments: bool) -> None:
    model, optimizer = made(kind, moments)
    weight, gradient = model.weight.detach().clone(), model.weight.grad.clone()  # type: ignore[union-attr]
    report = KernelDiff(optimizer.step, test=plain).compare()
    assert [diff.name for diff in report.outputs] == ["params[0] (after)", "params[1] (after)"]
    assert report.passed and report.mode == "float64", report.summary()
    assert torch.equal(model.weight, weight) and torch.equal(model.weight.grad, gradient)  # type: ignore[arg-type]


def test_a_wrong_step_of_an_optimizer_fails() -> None:
    def wrong(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        for node in gm.graph.nodes:  # the rate is `alpha` of add_, or a factor before it (torch 2.11)
            node.args = tuple(each * 1.01 if isinstance(each, float) else each for each in node.args)
            node.kwargs = {key: each * 1.01 if key == "alpha" else each for key, each in node.kwargs.items()}
        gm.recompile()
        return gm.forward

    _, optimizer = made("SGD", False)
    report = KernelDiff(optimizer.step, test=wrong).compare()
    assert report.verdict == "failed" and all(not diff.passed for diff in report.outputs)


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # Dynamo's own, of the resumed part
def test_a_step_in_a_function_that_is_called_is_recorded_too() -> None:
    model, optimizer = made("SGD", False)

    def inner(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    def step(x: Tensor) -> Tensor:
        return inner(x) * 2

    assert not differentiates(step) and differentiates(inner)
    report = KernelDiff(step, torch.randn(4, 8), test=plain).compare()
    assert report.passed, report.summary()
    assert len(report.outputs) == 3 and report.outputs[0].name == "out"


class Stepping(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        (x.requires_grad_() * 2).sum().backward()  # type: ignore[no-untyped-call]
        return x


def test_who_differentiates_is_told_from_who_only_defines_it() -> None:
    class Own(torch.autograd.Function):
        @staticmethod
        def backward(ctx: object, *gradients: Tensor) -> Tensor:
            return gradients[0]

    assert differentiates(Stepping()) and differentiates(partial(Stepping().forward, torch.ones(2)))
    assert not differentiates(Own) and not differentiates(nn.Linear(2, 2)) and not differentiates(torch.sin)


def test_only_torchs_refusal_to_differentiate_is_one() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.ones(2).sum().backward()  # type: ignore[no-untyped-call]
    assert failed_to_differentiate(refused.value)
    assert not failed_to_differentiate(RuntimeError("it does not require grad")) and not failed_to_differentiate(None)


def test_a_program_that_fails_is_not_said_to_fail_in_float64() -> None:
    def broken(x: Tensor) -> Tensor:
        return x.view(7)

    report = KernelDiff(broken, torch.ones(4), test=plain).compare()
    assert report.verdict == "error" and report.float64_missing == NoFloat64("reference", "eager")


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float32, torch.bfloat16])
def test_another_default_dtype_is_no_matter(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from idbg.engine.kerneldiff.tensors import native
    from idbg.engine.kerneldiff.tensors.compare import compare_tensors

    monkeypatch.setattr(native, "ready", lambda: None)  # as while its kernel is being built
    torch.set_default_dtype(torch.float64)
    try:
        x = torch.randn(40, 30).to(dtype)
        assert compare_tensors(x, x).passed
        assert not compare_tensors(x, (x.float() * 2).to(dtype)).passed
        report = KernelDiff(lambda x: x.float().sin().to(dtype), torch.randn(8, 8, dtype=torch.float32)).compare()
    finally:
        torch.set_default_dtype(torch.float32)
    assert report.passed, report.summary()
