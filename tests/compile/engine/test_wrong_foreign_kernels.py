"""A wrong kernel of an own backend, or of an adapter, is named with its node and the line of the program."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule, Interpreter

from idbg import AcceleratorAdapter, Capabilities, CompilationResult, CompilationStatus
from idbg.engine import backends
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.views.blame import blame_sentence

HERE = Path(__file__).name


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        gate = torch.sigmoid(hidden)
        scaled = gate * hidden
        return self.second(scaled)


LINE = Net.forward.__code__.co_firstlineno + 2


class WrongSigmoid(Interpreter):
    """The device: its kernel for sigmoid is 1 % too large."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = super().call_function(target, args, kwargs)
        return value * 1.01 if "sigmoid" in str(target) else value


def whole(gm: GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
    return WrongSigmoid(gm).run


lowered = aot_autograd(fw_compiler=whole)


class Device(AcceleratorAdapter):
    """An accelerator whose compiler has the wrong kernel."""

    name = "device"
    capabilities = Capabilities()

    def compile(self, graph_module: GraphModule, inputs: Sequence[object]) -> CompilationResult:
        return CompilationResult(status=CompilationStatus.SUCCESS, compiled=WrongSigmoid(graph_module).run)


@pytest.mark.parametrize(
    "backend",
    [whole, lowered, pytest.param(None, id="adapter")],
)
def test_the_node_of_a_wrong_kernel_is_named(backend: Any) -> None:
    torch.manual_seed(0)
    test = backend or backends.backend(Device(), strict=False, constraints=())
    report = ModelDiff(Net().eval(), (torch.randn(4, 16),), test=test, per_kernel=True).compare()
    assert report.verdict == "failed" and report.culprit is not None
    bad = report.first_wrong_stage
    assert bad is not None and bad.stage == "kernels" and bad.made_by is not None
    assert (bad.node, Path(bad.file).name, bad.line, bad.made_by.kind) == ("gate", HERE, LINE, "backend")
    assert "gate" in blame_sentence(report)
