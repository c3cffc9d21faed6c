"""The first wrong dispatch of IREE: planted edits of a module before it is compiled, and programs that are right."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from iree.compiler import api
from iree.turbine.runtime.launch import Launchable
from torch import Tensor, nn
from torch.nn import functional as F

from idbg.engine.compat import iree
from idbg.engine.compat.iree import observed_iree
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.layers import modules
from idbg.engine.kerneldiff.layers.iree import IREESearch
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K
from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport
from idbg.views.blame import blame_sentence

HERE = Path(__file__).name
Edit = Callable[[str], str]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        above = torch.relu(hidden)
        gate = torch.sigmoid(above)
        scaled = gate * above
        return self.second(scaled)


class Sum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        half = torch.relu(x) * 2
        both = half + x.abs()
        return torch.tanh(both)


def line_of(model: type[nn.Module], at: int) -> int:
    return model.forward.__code__.co_firstlineno + at


def by_name(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"


def compared(model: nn.Module, *inputs: Tensor, **settings: Any) -> DiffReport:
    report = ModelDiff(model, inputs, test="turbine_cpu", per_kernel=True, **settings).compare()
    assert report.failure is None, report.failure
    return report


def stages(report: DiffReport) -> dict[str, StageError]:
    return {stage.stage: stage for stage in report.stages}


def edited(patch: pytest.MonkeyPatch, edit: Edit) -> None:
    """The program changes what turbine compiles."""
    original = Launchable.jit_compile

    def compile_edited(source: str, **settings: Any) -> Any:
        return original(edit(source), **settings)

    patch.setattr(Launchable, "jit_compile", staticmethod(compile_edited))


def lowered(source: str) -> str:
    """The module in linalg and arith, as text without any places."""
    command = [iree._tool("iree-compile"), "-", "--compile-to=input", "-o", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def test_a_wrong_op_of_an_edited_module_is_named_with_its_node_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    edited(monkeypatch, lambda source: source.replace("torch.aten.sigmoid", "torch.aten.tanh"))
    torch.manual_seed(0)
    report = compared(Net().eval(), drawn(8, 32))
    row = stages(report)["rewritten"]
    assert [(stage.stage, stage.bad) for stage in report.stages] == [
        ("dynamo", False),
        ("imported", False),
        ("rewritten", True),
        ("kernels", False),
    ]
    assert (row.node, Path(row.file).name, row.line) == ("gate", HERE, line_of(Net, 3))
    assert row.made_by is not None and row.made_by.name.endswith("compile_edited")
    assert "torch.aten.tanh" in row.made_by.diff
    assert report.culprit is not None and report.culprit.unit == "dispatch" and "gate" in report.culprit.nodes
    assert f"wrong since rewritten model: `gate` ({HERE}:{line_of(Net, 3)})" in blame_sentence(report, by_name)


def test_a_module_that_was_lowered_before_its_edit_is_named_with_the_node_of_a_bisection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edited(monkeypatch, lambda source: lowered(source).replace("arith.addf", "arith.subf", 1))
    report = compared(Sum(), drawn(8, 64))
    row = stages(report)["rewritten"]
    assert row.bad and row.made_by is not None and "arith.subf" in row.made_by.diff
    assert (row.node, Path(row.file).name, row.line) == ("both", HERE, line_of(Sum, 2))
    assert not any(dispatch.observed or dispatch.bad for dispatch in report.kernels)  # at no known node


def test_a_wrong_backward_is_named_at_the_line_that_it_differentiates(monkeypatch: pytest.MonkeyPatch) -> None:
    edited(monkeypatch, lambda source: source.replace("torch.aten.sgn", "torch.aten.neg"))  # of the derivative of abs
    report = compared(Sum(), drawn(8, 64).requires_grad_(), backward=True)
    assert report.verdict == "failed" and all(diff.passed for diff in report.outputs)
    row = stages(report)["rewritten"]
    assert row.bad and row.file.endswith(HERE) and row.line == line_of(Sum, 2)


def test_a_module_that_is_wrong_below_its_text_is_the_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    original = api.Source.wrap_buffer

    def wrap_buffer(session: Any, buffer: bytes, *args: Any) -> Any:
        return original(session, buffer.replace(b"torch.aten.sigmoid", b"torch.aten.tanh"), *args)

    monkeypatch.setattr(api.Source, "wrap_buffer", staticmethod(wrap_buffer))
    torch.manual_seed(0)
    report = compared(Net().eval(), drawn(8, 32))
    assert not stages(report)["imported"].bad and "rewritten" not in stages(report)
    assert stages(report)["kernels"].bad


def test_a_run_that_hangs_is_one_sentence_and_the_node_is_bisected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iree, "_SECONDS", 0.01)
    edited(monkeypatch, lambda source: source.replace("torch.aten.sigmoid", "torch.aten.tanh"))
    torch.manual_seed(0)
    report = compared(Net().eval(), drawn(8, 32))
    assert not stages(report)["imported"].judged
    assert (stages(report)["kernels"].bad, stages(report)["kernels"].node) == (True, "gate")
    assert "for more than" in str(stages(report)["imported"].reason)


# ---------------------------------------------------------------- programs that are right


class Of(nn.Module):
    def __init__(self, function: Callable[..., Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *args: Tensor) -> Tensor:
        return self.function(self, *args)


PROGRAMS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "perceptron": (Net, (drawn(8, 32),)),
    "convolution": (lambda: Of(lambda s, x: s.c(x).relu().mean((2, 3)), c=nn.Conv2d(3, 8, 3)), (drawn(2, 3, 9, 9),)),
    "attention": (
        lambda: Of(lambda s, x: s.a(x, x, x)[0], a=nn.MultiheadAttention(32, 4, batch_first=True)),
        (drawn(2, 6, 32),),
    ),
    "norm": (lambda: Of(lambda s, x: F.gelu(s.n(x)) * 2, n=nn.LayerNorm(32)), (drawn(4, 32),)),
    "embedding": (lambda: Of(lambda s, i: s.e(i).sum(1), e=nn.Embedding(50, 16)), (torch.arange(28).view(4, 7),)),
    "in place": (lambda: Of(lambda _, x: (x * 2).add_(1).relu_().mul_(3)), (drawn(4, 32),)),
    "integers": (lambda: Of(lambda _, x: torch.where(x > 0, x, x.exp()).cumsum(-1)), (drawn(4, 32),)),
    "half": (lambda: Of(lambda s, x: s.a(x).relu() + 1, a=nn.Linear(64, 32)).half(), (drawn(8, 64).half(),)),
    "brain": (lambda: Of(lambda s, x: s.a(x).relu() + 1, a=nn.Linear(64, 32)).bfloat16(), (drawn(8, 64).bfloat16(),)),
    "views": (lambda: Of(lambda _, x: x.view(4, 4, 8).permute(1, 0, 2).reshape(4, 32)[:, ::2] + 1), (drawn(4, 32),)),
}


def searches(model: nn.Module, *inputs: Tensor, backward: bool = False) -> Iterator[IREESearch]:
    problems: list[str] = []
    torch.compiler.reset()
    with torch.set_grad_enabled(backward), observed_iree(problems) as parts:
        result = torch.compile(model, backend="turbine_cpu")(*inputs)
        if backward:
            result.sum().backward()
    assert not problems and len(parts) == 1 + backward
    yield from (IREESearch(part, KERNEL_K) for part in parts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_dispatch_of_a_right_program_is_accused(name: str) -> None:
    torch.manual_seed(0)
    made, inputs = PROGRAMS[name]
    for search in searches(made().eval(), *inputs):
        assert_nothing_accused(search)


def test_no_dispatch_of_a_right_training_is_accused() -> None:
    for search in searches(Sum(), drawn(8, 64).requires_grad_(), backward=True):
        assert_nothing_accused(search)


def assert_nothing_accused(search: IREESearch) -> None:
    assert not search.is_wrong() and not search.is_changed
    found = search.located()
    assert [stage.judged for stage in found.stages] == [True, True, True]
    assert found.layers
    assert not any(row.bad for row in found.stages) and not any(layer.bad for layer in found.layers)
    assert all(layer.observed or layer.reason for layer in found.layers)


# ---------------------------------------------------------------- the text of modules

MODULE = """\
module {
  func.func @main(%arg0: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
    %0 = torch.aten.relu %arg0 : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
    %1 = torch.aten.tanh %0 : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
    return %1 : !torch.vtensor<[2],f32>
  }
}
"""


def test_values_of_a_module_become_results() -> None:
    values = modules.node_values(MODULE, {2: "relu", 3: "tanh"})
    assert {name: value.name for name, value in values.items()} == {"relu": "%0", "tanh": "%1"}
    changed = modules.with_values(MODULE, [values["relu"]])
    assert changed is not None and "return %1, %0 : !torch.vtensor<[2],f32>, !torch.vtensor<[2],f32>" in changed
    assert modules.with_values("module {}", [values["relu"]]) is None


def test_lines_of_an_edited_module_are_those_that_it_left_or_replaced() -> None:
    nodes = {2: "relu", 3: "tanh"}
    assert modules.lines_after(MODULE, MODULE.replace("aten.tanh", "aten.sigmoid"), nodes) == nodes
    more = MODULE.replace("    %1 =", "    %x = torch.constant.int 1\n    %1 =")
    assert modules.lines_after(MODULE, more, nodes) == {2: "relu", 4: "tanh"}
    assert modules.lines_after(MODULE, "module { }", nodes) == {}
