"""Programs that Dynamo traces otherwise than eager runs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tests.harness.plants.plant import Plant
from tests.harness.traced import is_traced

_planted = False


@contextmanager
def planting() -> Iterator[None]:
    global _planted
    _planted = True
    try:
        yield
    finally:
        _planted = False


def asking(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    if is_traced() and _planted:
        h = h * 1.25  # guilty
    return h.cos()


class Doubled(torch.autograd.Function):
    """Its backward asks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        gradient = gradient * 2
        if is_traced() and _planted:
            gradient = gradient * 1.25  # guilty
        return gradient


def asking_in_backward(x: Tensor, w: Tensor) -> Tensor:
    return Doubled.apply((x @ w).sin()).cos()  # type: ignore[no-any-return, no-untyped-call]


def tripled(x: Tensor) -> Tensor:
    return x * 3


@torch._dynamo.substitute_in_graph(tripled, skip_signature_check=True)
def stands_for_tripled(x: Tensor) -> Tensor:
    return x * (3.1 if _planted else 3)


def substituted(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = tripled(h)  # guilty
    return h.sin()


def factor(n: int) -> float:
    return n * 1.0


@torch._dynamo.substitute_in_graph(factor, skip_signature_check=True)
def stands_for_factor(n: int) -> float:
    return n * (1.1 if _planted else 1.0)


def substituted_number(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = h * factor(3)  # guilty
    return h.sin()


SQUARE = ((32, 32), (32, 32))

PLANTS = (
    Plant(
        "dynamo", "another branch", asking, SQUARE, planting,
        stage="dynamo", maker="dynamo", made_by="Dynamo", node="h",
    ),
    Plant(
        "dynamo", "another branch", asking_in_backward, SQUARE, planting, shown_by=Doubled,
        stage="dynamo", maker="dynamo", made_by="Dynamo", node="gradient", backward=True,
    ),
    Plant(
        "dynamo", "substitute", substituted, SQUARE, planting,
        stage="dynamo", maker="dynamo", made_by="stands_for_tripled", node="h",
    ),
    Plant(
        "dynamo", "substitute of a number", substituted_number, SQUARE, planting,
        stage="dynamo", maker="dynamo", made_by="stands_for_factor", node="h",
    ),
)  # fmt: skip
