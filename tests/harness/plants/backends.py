"""A foreign backend that computes one op wrong: of Dynamo's graph, of the ATen graph, of the backward."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.backends import registry
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from tests.harness.plants.plant import Plant, Planting

NAME = "plants_far"
Backend = Callable[..., Any]


def registered(backend: Backend) -> Planting:
    """torch.compile knows the backend by its name."""

    @contextmanager
    def planting() -> Iterator[None]:
        torch._dynamo.register_backend(backend, name=NAME)
        try:
            yield
        finally:
            registry._COMPILER_FNS.pop(NAME)
            registry._BACKENDS.pop(NAME)

    return planting


def taking(was: object, new: Callable[..., Any]) -> Backend:
    """Computes each node of the graph as it is, but for this op."""

    def backend(gm: GraphModule, inputs: Sequence[Tensor]) -> Callable[..., Any]:
        for node in gm.graph.nodes:
            if node.target in (was, getattr(was, "__name__", "")):
                node.op, node.target = "call_function", new
        gm.recompile()
        return gm.forward

    return backend


def as_it_is(gm: GraphModule, inputs: Sequence[Tensor]) -> Callable[..., Any]:
    return gm.forward


def by_aot(forward: Backend, backward: Backend) -> Backend:
    """A backend that is given ATen graphs."""
    return aot_autograd(fw_compiler=forward, bw_compiler=backward)


def leaky(grad: Tensor, found: Tensor, threshold: float) -> Tensor:
    """A gradient where there is none."""
    return torch.where(found > threshold, grad, grad * 0.5)


def rectified(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = torch.relu(h)  # guilty
    return h @ w


def softened(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).cos()
    h = h.tanh()  # guilty
    return h @ w


aten = torch.ops.aten
SQUARE = ((32, 32), (32, 32))

PLANTS = (
    Plant(
        "backend", "dynamo", rectified, SQUARE, registered(taking(torch.relu, torch.tanh)), test=NAME,
        stage="kernels", maker="backend", made_by=NAME, node="h",
    ),
    Plant(
        "backend", "aten", softened, SQUARE, test=NAME, dtype=torch.bfloat16,
        planting=registered(by_aot(taking(aten.tanh.default, aten.sin.default), as_it_is)),
        stage="kernels", maker="backend", made_by=NAME,
    ),
    Plant(
        "backend", "backward", rectified, SQUARE, test=NAME, backward=True,
        planting=registered(by_aot(as_it_is, taking(aten.threshold_backward.default, leaky))),
        stage="kernels", maker="backend", made_by=NAME,
    ),
)  # fmt: skip
