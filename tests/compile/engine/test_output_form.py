"""What is reported of outputs that agree in their numbers and differ in memory, layout, strides or gradients?"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.form import forms, with_forms
from idbg.engine.kerneldiff.tensors.compare import compare_tensors
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.views.criteria import because, form_parts
from idbg.views.remarks import tensor_note
from idbg.views.tensors import decided

Change = Callable[[Tensor], Tensor]


def changed_by(change: Change) -> Callable[..., Any]:
    """A backend that runs Dynamo's graph as it is and changes each output."""

    def backend(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        return lambda *args: tuple(change(each) for each in gm(*args))

    return backend


def only(report: DiffReport) -> TensorDiff:
    (found,) = report.outputs
    return found


SPOILS: dict[str, tuple[Callable[[Tensor], Tensor], Change, str]] = {
    "a view of an input that became a copy": (lambda x: x.t(), torch.clone, "alias"),
    "a result in the memory of an input": (lambda x: x.view(4, 4) + 0, lambda out: out, ""),
    "a lost gradient": (lambda x: x * 2, torch.detach, "requires_grad"),
}


@pytest.mark.parametrize("case", SPOILS)
def test_what_changes_the_programs_meaning_fails(case: str) -> None:
    model, change, by = SPOILS[case]
    x = torch.randn(4, 4, requires_grad=True)
    clean = only(KernelDiff(model, x, grad=True, test=changed_by(lambda out: out)).compare())
    assert clean.passed and not clean.form and not clean.note
    found = only(KernelDiff(model, x, grad=True, test=changed_by(change)).compare())
    assert found.failed_by == ((by,) if by else ()) and found.passed == (not by)
    assert [each.kind for each in found.form if each.failed] == ([by] if by else [])


def test_a_result_that_lies_in_an_inputs_memory_fails_and_says_whose() -> None:
    def in_place(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        return lambda x: (x.copy_(gm(x)[0]),)

    found = KernelDiff(lambda x: x * 2, torch.ones(4), test=in_place).compare().outputs[0]
    assert found.failed_by == ("alias",)
    assert (
        tensor_note(found)
        == "it lies in the memory of args[0], in eager in its own: what is written to it changes that"
    )


class Own(Tensor):
    pass


def test_another_class_or_device_fails_with_both_values_and_a_parameter_is_a_tensor() -> None:
    x = torch.ones(3)
    here = forms({"out": x}, {})
    own, there, weight = x.as_subclass(Own), forms({"out": x.to("meta")}, {})["out"], nn.Parameter(x)
    (found,) = with_forms([compare_tensors(own, x, name="out")], forms({"out": own}, {}), here, "eager")
    assert found.failed_by == ("class",) and form_parts(found) == {"class": "class Tensor, wanted Own"}
    assert tensor_note(found) == "its class is Tensor, in eager Own"
    moved = {"out": replace(there, stride=here["out"].stride)}
    (found,) = with_forms([compare_tensors(x, x, name="out")], here, moved, "eager")
    assert decided(found) == form_parts(found)["device"] == "device meta, wanted cpu"
    (found,) = with_forms([compare_tensors(weight, x, name="out")], forms({"out": weight.detach()}, {}), here, "eager")
    assert found.passed
    assert forms({"out": weight}, {})["out"].type == here["out"].type


def test_another_dtype_or_shape_stands_before_the_numbers() -> None:
    wanted = torch.linspace(0.1, 1, 8)
    found = compare_tensors(wanted, wanted.half() + 1, name="out")
    assert decided(found).startswith("dtype float16, wanted float32; by tolerance")
    assert because(found).startswith("dtype float16, wanted float32; 8 of 8 elements")
    found = compare_tensors(wanted, wanted[:4], name="out")
    assert decided(found) == because(found) == "shape f32[4], wanted f32[8]"


def test_a_sparse_result_that_became_dense_fails() -> None:
    """Dynamo breaks the graph at what is sparse: only a backend of others can lose that."""
    sparse, dense = torch.eye(3).to_sparse(), torch.eye(3)
    of_eager, of_test = (forms({"out": each}, {}) for each in (sparse, dense))
    found = with_forms([compare_tensors(sparse, dense, name="out")], of_eager, of_test, "eager")
    assert found[0].failed_by == ("layout",) and tensor_note(found[0]) == "its layout is strided, in eager sparse_coo"


def test_other_strides_are_said_and_fail_nothing() -> None:
    turned = changed_by(lambda out: out.t().contiguous().t())
    report = KernelDiff(lambda x: x * 2, torch.randn(4, 3), test=turned).compare()
    assert report.passed and "its strides are [1, 4], in eager [3, 1]" in report.summary()
    assert [(each.kind, each.failed) for each in only(report).form] == [("stride", False)]


def test_strides_of_dims_of_one_element_say_nothing() -> None:
    odd = changed_by(lambda out: out.as_strided((1, 3), (7, 1)))
    assert not only(KernelDiff(lambda x: x * 2, torch.randn(1, 3), test=odd).compare()).form


def test_outputs_that_no_longer_share_memory_are_said() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y, y.view(-1)

    report = KernelDiff(model, torch.randn(2, 2), test=changed_by(torch.clone)).compare()
    assert report.passed and tensor_note(report.outputs[1]) == "it is a copy, in eager it shares memory with out[0]"


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("table", torch.arange(16.0).view(4, 4))

    def forward(self, x: Tensor) -> list[Tensor]:
        y = self.inner(x)
        table = self.table
        assert isinstance(table, Tensor)
        parts = [*y.split(2, dim=-1), y[:, ::2], y.t(), y.detach(), y.unsqueeze(1).expand(-1, 3, -1)]
        return [x, x.t(), x[1:], table, table[0], self.inner.weight, y, *parts, y.contiguous(), y.clone()]


@pytest.mark.parametrize("grad", [False, True])
def test_inductor_keeps_the_form_of_views(grad: bool) -> None:
    report = KernelDiff(Views(), torch.randn(4, 4), grad=grad).compare()
    assert report.passed, report.summary()
    assert [tensor_note(diff) for diff in report.outputs if diff.form] == []
