"""Check that a graph returns, and leaves in the inputs that it writes to, the values that its launches have computed.

The launches may be right and another buffer be returned, the memory of a result be reused, or an input never be
written. Buffers are recognized by checksums of their bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import comparing, fx, stages
from idbg.schema.remarks import Remark

_CHUNK = 1 << 22  # words that are summed at once: they and their places take four times as much memory

Checksum = tuple[int, ...]


@dataclass(frozen=True)
class LostValue:
    """A node whose value was computed, or should have been, and does not reach the graph's caller; `how`: why not."""

    node: Node
    how: Remark


class ReturnedValues:
    """The values that the launches of one call have computed for the graph's caller."""

    def __init__(self, graph: comparing.InductorGraph, written: Mapping[str, str]) -> None:
        """`written`: each name that launches write to, and the input or buffer whose memory it has."""
        returned = stages.output_values(graph.gm)
        self._names = [value.name if isinstance(value, Node) else "" for value in returned]
        self._nodes = {node.name: node for node in graph.gm.graph.nodes}
        self._checksums: dict[str, Checksum] = {}
        self._returned: list[Checksum | None] = []
        inputs = [node for node in graph.gm.graph.nodes if node.op == "placeholder"]
        names = dict(zip(inputs, graph.inputs, strict=False))
        self._unwritten = [node for node in _copies(inputs) if names.get(_target(node), "") not in written.values()]

    def computed(self, name: str, value: Tensor) -> None:
        """Remember a node's value, if the graph returns it."""
        if name in self._names and is_plain(value):
            self._checksums[name] = checksum(value)

    def returned(self, values: object) -> None:
        """Record what the graph is about to return."""
        if isinstance(values, (tuple, list)) and len(values) == len(self._names):
            self._returned = [checksum(value) if is_plain(value) else None for value in values]

    def lost(self) -> Iterator[LostValue]:
        """The values that do not reach the caller: results in order, then inputs."""
        for name, found in zip(self._names, self._returned, strict=False):
            computed = self._checksums.get(name)
            if computed is None or found is None or computed == found:
                continue
            others = [other for other, mark in self._checksums.items() if mark == found and other != name]
            how = Remark("returned for it", others[0]) if others else Remark("overwritten")
            yield LostValue(self._nodes[name], how)
        for node in self._unwritten:
            yield LostValue(node, Remark("not written", str(_target(node))))


def _copies(inputs: Sequence[Node]) -> Iterator[Node]:
    """The nodes that copy a new value to an input."""
    for source in inputs:
        for user in source.users:
            is_copy = user.op == "call_function" and fx.op_name(user.target) == "copy_" and user.args[0] is source
            value = source.meta.get("val")
            if is_copy and user.args[1] is not source and isinstance(value, Tensor) and value.numel() != 0:
                yield user


def _target(node: Node) -> Node:
    target = node.args[0]
    assert isinstance(target, Node)
    return target


def is_plain(value: object) -> bool:
    """Whether it is a tensor whose memory can be read as it is."""
    return type(value) in (Tensor, torch.nn.Parameter) and value.layout == torch.strided  # type: ignore[attr-defined]


def checksum(value: object) -> Checksum:
    """Exact sums of the memory's words, plain and weighted with their positions; they wrap around."""
    assert isinstance(value, Tensor)
    plain = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    memory = plain.detach().resolve_neg().reshape(-1).contiguous().view(torch.uint8)  # of a row, reshape copies nothing
    total = torch.zeros(2, dtype=torch.int64, device=memory.device)
    for start in range(0, len(memory), 4 * _CHUNK):
        part = memory[start : start + 4 * _CHUNK].clone()  # which lies at a whole word
        words = torch.nn.functional.pad(part, (0, -len(part) % 4)).view(torch.int32)
        words = words.to(torch.int64)  # no product with a place wraps to the same number
        places = torch.arange(start // 4 + 1, start // 4 + 1 + len(words), device=words.device)
        total += torch.stack([words.sum(), (words * places).sum()])
    return (*(int(each) for each in total.tolist()), len(memory))
