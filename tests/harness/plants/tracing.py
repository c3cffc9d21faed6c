"""Programs that Dynamo traces otherwise than eager runs them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tests.harness.plants.plant import Plant

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
    if torch.compiler.is_compiling() and _planted:
        h = h * 1.25  # guilty
    return h.cos()


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
        "dynamo", "is_compiling", asking, SQUARE, planting,
        stage="dynamo", maker="dynamo", made_by="Dynamo", node="h",
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
