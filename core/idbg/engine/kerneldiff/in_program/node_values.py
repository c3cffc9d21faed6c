"""Measure the values of a graph's nodes in eager, as records that ranks are compared by."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from idbg.engine.compat import distributed
from idbg.engine.compat.torch_types import tree_leaves
from idbg.engine.kerneldiff.float64.draws import recorded_draws
from idbg.engine.kerneldiff.tensors.float64_device import on_float64_device
from idbg.engine.kerneldiff.tensors.wrapped import no_memory
from idbg.schema.node_values import NodeValue

_PIECE = 1 << 22  # elements that are converted at a time
_MIX = (-4658895280553007687, -7723592293110705685)  # splitmix64's multipliers, as int64
Ranks = tuple[int, ...]


def inputs_measured(gm: GraphModule, args: tuple[object, ...], replicas: Mapping[int, Ranks]) -> tuple[NodeValue, ...]:
    """The values of the placeholders. `replicas`: the ranks that must have the same tensor, by its id."""
    names = [node.name for node in gm.graph.nodes if node.op == "placeholder"]
    found = (measured(name, *distributed.replicated(each, replicas)) for name, each in zip(names, args, strict=False))
    return tuple(value for value in found if value)


def nodes_measured(gm: GraphModule, args: tuple[object, ...]) -> tuple[NodeValue, ...]:
    """The values of the other nodes, from one run in eager. Raises what that raises."""
    run = _Measuring(gm)
    with torch.no_grad(), recorded_draws() as run.draws:
        distributed.finished(run.run(*args))
    return tuple(run.values)


class _Measuring(Interpreter):
    """Fills `values`, as each node leaves them: one that is changed in place later has another then."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm)
        self.values: list[NodeValue] = []
        self.draws: list[str] = []

    def run_node(self, n: Node) -> Any:
        before = len(self.draws)
        value = super().run_node(n)
        if n.op not in ("placeholder", "output") and not distributed.is_unfinished(n):
            found = measured(n.name, value, distributed.ranks_of_result(n), random=len(self.draws) > before)
            self.values += [found] if found else []
        return value


def measured(name: str, value: object, equal_in: Ranks = (), *, random: bool = False) -> NodeValue | None:
    """The record of a tensor, or of several, with the figures of the first; None of what holds no tensor."""
    tensors = [each for each in tree_leaves(value) if isinstance(each, Tensor)]
    if not tensors:
        return None
    if not all(map(_is_read, tensors)):
        return NodeValue(node=name, checksum="", random=random)
    whole = 0
    for at, tensor in enumerate(reversed(tensors)):
        checksum, finite, mean, deviation, largest = _figures(on_float64_device(tensor.detach()))
        whole = whole * _MIX[0] + checksum + at
    return NodeValue(
        node=name,
        checksum=f"{whole & (1 << 64) - 1:016x}",
        elements=tensor.numel(),
        mean=mean if finite else None,
        std=deviation if finite else None,
        max_abs=largest if finite else None,
        nonfinite=tensor.numel() * (2 if tensor.is_complex() else 1) - finite,
        random=random,
        equal_in=equal_in,
    )


def _is_read(value: Tensor) -> bool:
    return (
        type(value) in (Tensor, torch.nn.Parameter)
        and value.layout == torch.strided
        and not value.is_meta
        and not value.is_quantized
        and no_memory(value) is None
    )


def _figures(value: Tensor) -> tuple[int, int, float, float, float]:
    """A checksum of the bits; of the finite elements their number, mean, deviation and largest magnitude."""
    real = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    flat = real.contiguous().reshape(-1)
    checksum = torch.zeros((), dtype=torch.int64, device=flat.device)
    sums = torch.zeros(4, dtype=torch.float64, device=flat.device)
    for start, piece in _pieces(flat):
        checksum += _hashed(piece, start)
        wide = piece.to(torch.float64)
        is_finite = wide.isfinite()
        wide = torch.where(is_finite, wide, 0.0)
        largest = torch.maximum(sums[3], wide.abs().max())
        sums = torch.stack([sums[0] + is_finite.sum(), sums[1] + wide.sum(), sums[2] + torch.dot(wide, wide), largest])
    finite, total, squares, biggest = sums.tolist()
    mean = total / finite if finite else 0.0
    variance = max(0.0, squares / finite - mean * mean) if finite else 0.0
    return int(checksum), int(finite), mean, math.sqrt(variance), biggest


def _pieces(flat: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, flat.numel(), _PIECE):
        yield start, flat[start : start + _PIECE]


def _hashed(piece: Tensor, start: int) -> Tensor:
    """A sum modulo 2^64 over the elements' bits, each mixed and weighted with its place."""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[piece.element_size()]
    mixed = piece.view(bits).to(torch.int64)
    mixed = (mixed ^ (mixed >> 31)) * _MIX[0]
    mixed = (mixed ^ (mixed >> 29)) * _MIX[1]
    places = torch.arange(start, start + piece.numel(), device=piece.device)
    return (mixed * (2 * places + 1)).sum()
