"""Small sides of a KernelDiff: backends that spoil their outputs, and what a report says of the only one."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.fx import GraphModule

from idbg.schema.diff import DiffReport, TensorDiff

Outputs = list[Tensor]
Spoil = Callable[[Outputs], Any]


def spoiled(spoil: Spoil) -> Callable[..., Any]:
    """A backend that computes what it is given, then does this to the outputs."""

    def compiler(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        def run(*args: Tensor) -> Any:
            outputs = [value.clone() for value in gm(*args)]
            return tuple(spoil(outputs) or outputs)

        return run

    return compiler


def adding(amount: float) -> Callable[..., Any]:
    return spoiled(lambda outputs: [outputs[0] + amount, *outputs[1:]])


def plain(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
    return gm.forward


def only(report: DiffReport) -> TensorDiff:
    (diff,) = report.outputs
    return diff


def wide(x: Tensor) -> Tensor:
    return (x * 2).sin()
