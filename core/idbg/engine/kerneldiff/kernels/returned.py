"""Is what a graph returns, and leaves in the inputs that it writes to, what its launches have made?

Launches that are right may be followed by code that returns another buffer, by one that takes the memory of what is
still to be returned, or by none that writes to an input. A buffer is known again by the sums of its bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import comparing, fx, stages

_CHUNK = 1 << 22  # bytes that are summed at once: their places take eight times as many

Checksum = tuple[int, ...]


@dataclass(frozen=True)
class LostValue:
    """A node whose value a launch made, or should have, and which the graph's caller does not get; `how`: why not."""

    node: Node
    how: str


class ReturnedValues:
    """What the launches of one call have made of what the caller gets."""

    def __init__(self, graph: comparing.InductorGraph, written: Mapping[str, str]) -> None:
        """`written`: each name that launches write to, and the input or buffer whose memory it has."""
        returned = stages.output_values(graph.gm)
        self._names = [value.name if isinstance(value, Node) else "" for value in returned]
        self._nodes = {node.name: node for node in graph.gm.graph.nodes}
        self._marks: dict[str, Checksum] = {}
        self._made_by_place: list[Checksum | None] = []
        inputs = [node for node in graph.gm.graph.nodes if node.op == "placeholder"]
        names = dict(zip(inputs, graph.inputs, strict=False))
        self._unwritten = [node for node in _copies(inputs) if names.get(_target(node), "") not in written.values()]

    def made(self, name: str, value: Tensor) -> None:
        """A launch has left this node's value in a buffer: remembered, if the graph returns it."""
        if name in self._names and _is_plain(value):
            self._marks[name] = _mark(value)

    def returned(self, values: object) -> None:
        """What the graph is about to return."""
        if isinstance(values, (tuple, list)) and len(values) == len(self._names):
            self._made_by_place = [_mark(value) if _is_plain(value) else None for value in values]

    def lost(self) -> Iterator[LostValue]:
        """What was made and is not what the caller gets, the results in order, then the inputs."""
        for name, found in zip(self._names, self._made_by_place, strict=False):
            made = self._marks.get(name)
            if made is None or found is None or made == found:
                continue
            others = [other for other, mark in self._marks.items() if mark == found and other != name]
            how = (
                f"{others[0]} is returned in its place"
                if others
                else "its memory was written to before it was returned"
            )
            yield LostValue(self._nodes[name], how)
        for node in self._unwritten:
            yield LostValue(node, f"no launch writes to {_target(node)}")


def _copies(inputs: Sequence[Node]) -> Iterator[Node]:
    """The nodes that copy a new value to an input."""
    for given in inputs:
        for user in given.users:
            is_copy = user.op == "call_function" and fx.op_name(user.target) == "copy_" and user.args[0] is given
            value = given.meta.get("val")
            if is_copy and user.args[1] is not given and isinstance(value, Tensor) and value.numel() != 0:
                yield user


def _target(node: Node) -> Node:
    target = node.args[0]
    assert isinstance(target, Node)
    return target


def _is_plain(value: object) -> bool:
    return type(value) in (Tensor, torch.nn.Parameter) and value.layout == torch.strided  # type: ignore[attr-defined]


def _mark(value: object) -> Checksum:
    """Sums of the bytes in the order of the elements, also by their places: they wrap around, and are exact."""
    assert isinstance(value, Tensor)
    plain = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    memory = plain.detach().reshape(-1).clone().view(torch.uint8)
    total = torch.zeros(2, dtype=torch.int64, device=memory.device)
    for start in range(0, len(memory), _CHUNK):
        part = memory[start : start + _CHUNK].to(torch.int64)
        places = torch.arange(start + 1, start + 1 + len(part), device=part.device)
        total += torch.stack([part.sum(), (part * places % 65_521).sum()])
    return (*(int(each) for each in total.tolist()), len(memory))
