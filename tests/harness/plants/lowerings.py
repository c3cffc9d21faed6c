"""Wrong lowerings, in Inductor's table of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from tests.harness.plants.plant import Plant, Planting

aten = torch.ops.aten


def lowered(op: torch._ops.OpOverload, wrong: Callable[..., Any]) -> Planting:
    """Inductor lowers the op by `wrong`, which is given the right lowering first."""

    @contextmanager
    def planting() -> Iterator[None]:
        from torch._inductor.lowering import lowerings

        right = lowerings[op]

        def wrongly(*args: Any, **kwargs: Any) -> Any:
            return wrong(right, *args, **kwargs)

        vars(wrongly).update({name: value for name, value in vars(right).items() if name != "__wrapped__"})
        with patch.dict(lowerings, {op: wrongly}):
            yield

    return planting


def pointwise(op: torch._ops.OpOverload, factor: float) -> Planting:
    """Inductor lowers the op by what torch makes of a function: the right values, times a factor."""

    @contextmanager
    def planting() -> Iterator[None]:
        from torch._inductor.lowering import lowerings, make_pointwise
        from torch._inductor.virtualized import ops

        def wrong(x: Any) -> Any:
            return ops.mul(getattr(ops, op.overloadpacket.__name__)(x), ops.constant(factor, torch.float32))

        with patch.dict(lowerings, {op: make_pointwise(wrong)}):
            yield

    return planting


def written(name: str, factor: float) -> Planting:
    """The C++ of an op is written by a function of the program's: the right values, times a factor."""

    @contextmanager
    def planting() -> Iterator[None]:
        from torch._inductor.codegen.cpp import CppOverrides, CppVecOverrides

        with ExitStack() as stack:
            for overrides in (CppOverrides, CppVecOverrides):
                right: Callable[..., Any] = getattr(overrides, name)

                def wrong(x: Any, right: Callable[..., Any] = right) -> str:
                    return f"({right(x)}) * decltype({x})({factor}f)"

                stack.enter_context(patch.object(overrides, name, staticmethod(wrong)))
            yield

    return planting


def other(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """As another op is lowered."""

    def wrong(right: Any, *args: Any, **kwargs: Any) -> Any:
        from torch._inductor.lowering import lowerings

        return lowerings[op](*args, **kwargs)

    return wrong


def without_the_last(right: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A sum over the first dim that stops one too soon."""
    from torch._inductor.lowering import lowerings

    return right(lowerings[aten.slice.Tensor](x, 0, 0, -1), *args, **kwargs)


def branches_swapped(right: Any, condition: Any, one: Any, two: Any) -> Any:
    return right(condition, two, one)


def nothing_written(right: Any, target: Any, source: Any, *args: Any) -> Any:
    return target


def same_order(right: Any, x: Any, dims: Any) -> Any:
    """Of a square, so that its shape is right."""
    return right(x, [0, 1])


def squashed(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = h.sigmoid()  # guilty
    return h @ w


def summed(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    total = h.sum(0)  # guilty
    return total @ w


def rectified(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = torch.relu(h)  # guilty
    return h @ w


def turned(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).cos()
    h = h + x.sin().t()  # guilty
    return h @ w


def fused(x: Tensor, w: Tensor) -> Tensor:
    """Its kernel ends with another node than the one that is lowered wrongly."""
    h = x @ w
    h = h.sigmoid()  # guilty
    h = h * 1.25
    return h.cos() - 2


class Counting(nn.Module):
    """Its buffer is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.total = nn.Buffer(torch.zeros(32))

    def forward(self, x: Tensor) -> Tensor:
        h = x.sin()
        self.total.add_(h.detach().sum(0))  # guilty
        return h * 2


SQUARE = ((32, 32), (32, 32))
BF16 = torch.bfloat16

PLANTS = (
    Plant(
        "lowering", "sigmoid", squashed, SQUARE, lowered(aten.sigmoid.default, other(aten.tanh.default)),
        stage="kernels", maker="lowering", made_by="sigmoid", node="sigmoid",
    ),
    Plant(
        "lowering", "fused", fused, SQUARE, lowered(aten.sigmoid.default, other(aten.tanh.default)),
        stage="kernels", maker="lowering", made_by="sigmoid", node="sigmoid",
    ),
    Plant(
        "lowering", "pointwise", squashed, SQUARE, pointwise(aten.sigmoid.default, 1.02),
        stage="kernels", maker="lowering", made_by="sigmoid", node="sigmoid",
    ),
    Plant(
        "lowering", "override", fused, SQUARE, written("sigmoid", 1.02),
        stage="kernels", maker="lowering", made_by="sigmoid", node="sigmoid", devices=("cpu",),
    ),
    Plant(
        "lowering", "sum", summed, SQUARE, lowered(aten.sum.dim_IntList, without_the_last),
        stage="kernels", maker="lowering", made_by="sum", node="sum", dtype=BF16,
    ),
    Plant(
        "lowering", "where", rectified, SQUARE, lowered(aten.where.self, branches_swapped),
        stage="kernels", maker="lowering", made_by="where", node="where", backward=True,
    ),
    Plant(
        "stride", "permute", turned, SQUARE, lowered(aten.permute.default, same_order),
        stage="kernels", maker="lowering", made_by="permute", node="",
    ),
    Plant(
        "mutation", "lowering", Counting, ((16, 32),), lowered(aten.copy_.default, nothing_written),
        stage="kernels", maker="lowering", made_by="copy_", node="copy_", no_kernel=True,
    ),
)  # fmt: skip
