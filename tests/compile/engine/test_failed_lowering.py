"""Is a lowering of the user's own that raises named, with the node and the line that it lowers?"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._inductor.lowering import lowerings, register_lowering

from idbg import KernelDiff
from idbg.reports.diff import summary


@torch.library.custom_op("idbg_tests::scaled", mutates_args=())
def scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


@scaled.register_fake
def _(x: Tensor, factor: float) -> Tensor:
    return torch.empty_like(x)


def program(x: Tensor) -> Tensor:
    h = x.sin()
    h = torch.ops.idbg_tests.scaled(h, 2.0)
    return h.cos()


@pytest.fixture
def failing_lowering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    op = torch.ops.idbg_tests.scaled.default
    monkeypatch.setitem(lowerings, op, None)  # put back after

    @register_lowering(op)
    def lower(x: Any, factor: float) -> Any:
        raise RuntimeError("it cannot be lowered yet")

    return lower


def test_the_lowering_its_node_and_the_line_are_named(failing_lowering: Callable[..., Any]) -> None:
    report = KernelDiff(program, (torch.ones(4),)).compare()
    failure = next(side.failure for side in report.sides if side.failure is not None)
    assert failure.lowering is not None
    assert (failure.lowering.node, failure.lowering.op) == ("scaled", "idbg_tests.scaled.default")
    assert (failure.lowering.file, failure.lowering.line) == (__file__, program.__code__.co_firstlineno + 2)
    assert "it was raised in the lowering of idbg_tests.scaled.default, for node scaled" in summary(report)
