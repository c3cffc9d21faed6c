"""Compiles that fail: of a backend and of a lowering, which are caught; then of fullgraph=True, which is not."""

import contextlib

import torch
from torch._inductor.lowering import register_lowering


@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@register_lowering(torch.ops.mine.twice.default, type_promotion_kind=None)
def lower_twice(x):
    raise NotImplementedError("no lowering of twice for this layout")


def picky(graph, inputs):
    raise RuntimeError("softmax is not supported")


@torch.compile(backend=picky)
def by_backend(x):
    return torch.softmax(x, -1)


@torch.compile
def by_lowering(x):
    return torch.ops.mine.twice(x)


@torch.compile(backend="eager")
def broken(x):
    with torch.no_grad():
        print("a break within a context")
    return x + 1


@torch.compile(fullgraph=True, backend="eager")
def whole(x):
    x = torch.sin(x)
    print("a break")
    return x + 1


for function in (by_backend, by_lowering):
    with contextlib.suppress(Exception):
        function(torch.randn(4))
broken(torch.randn(4))
whole(torch.randn(4))
