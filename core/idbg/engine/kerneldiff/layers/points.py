"""Find which value of another compiler's model is which node's.

Compilers name what they make of a node after it: the values that leave the ops of a node's name are the node's. After
passes that rename ops, a value is known by what reads it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from torch import Tensor
from torch.fx import GraphModule, Node

Place = tuple[int, int]
"""An output of an op: the op's place in its model, and the port."""

_FIXED = ("Constant", "Parameter")


class Op(Protocol):
    """One op of a model, whose inputs come before it."""

    @property
    def name(self) -> str:
        """Its name in the model."""

    @property
    def kind(self) -> str:
        """Its type."""

    @property
    def inputs(self) -> tuple[Place, ...]:
        """The outputs that it reads."""

    @property
    def outputs(self) -> int:
        """How many it has."""


def points_of(ops: Sequence[Op], gm: GraphModule) -> dict[str, Place]:
    """Where each node's value is in the model as it was converted, in the graph's order."""
    groups = _groups(ops, gm)
    readers = _readers(ops)
    found: dict[str, Place] = {}
    for node in gm.graph.nodes:
        if node.name in groups:
            found.update(_of_node(node, groups[node.name], ops, readers))
    return _in_order(found, gm)


def points_after(ops: Sequence[Op], before: Sequence[Op], gm: GraphModule) -> dict[str, Place]:
    """Where each node's value is in a model that passes have changed: where the same ops read it as `before`, else by
    its name.
    """
    read = _reads(ops, _readers(ops))
    earlier = points_of(before, gm)
    reads_before = {place: readers for readers, place in _reads(before, _readers(before)).items()}
    by_readers = {
        name: read[readers]
        for name, place in earlier.items()
        if (readers := reads_before.get(place)) is not None and readers in read
    }
    claimed = set(by_readers.values())
    by_name = {name: place for name, place in points_of(ops, gm).items() if place not in claimed}
    return _in_order(by_name | by_readers, gm)


def node_of(name: str, gm: GraphModule) -> str:
    """The node that an op's name begins with, as "relu/aten.relu.default/Relu"; "" of none."""
    node, slash, _ = name.partition("/")
    return node if slash and any(each.name == node for each in gm.graph.nodes) else ""


def _groups(ops: Sequence[Op], gm: GraphModule) -> dict[str, list[int]]:
    names = {node.name for node in gm.graph.nodes}
    groups: dict[str, list[int]] = {}
    for at, op in enumerate(ops):
        node, slash, _ = op.name.partition("/")
        if slash and node in names and op.kind not in _FIXED:
            groups.setdefault(node, []).append(at)
    return groups


def _readers(ops: Sequence[Op]) -> dict[Place, list[Place]]:
    """What reads each output: the op, and at which of its inputs."""
    readers: dict[Place, list[Place]] = {}
    for at, op in enumerate(ops):
        for argument, place in enumerate(op.inputs):
            readers.setdefault(place, []).append((at, argument))
    return readers


def _reads(ops: Sequence[Op], readers: Mapping[Place, Sequence[Place]]) -> dict[frozenset[tuple[str, int]], Place]:
    """Each output by what reads it, if nothing else is read by the same."""
    return {
        frozenset((ops[at].name, argument) for at, argument in by): place
        for place, by in readers.items()
        if ops[place[0]].kind not in _FIXED
    }


def _of_node(
    node: Node, group: Sequence[int], ops: Sequence[Op], readers: Mapping[Place, Sequence[Place]]
) -> Iterator[tuple[str, Place]]:
    """The output that leaves the node's ops, if it is one; of several results, those of a single op."""
    members = set(group)
    leaving = [
        (at, port)
        for at in group
        for port in range(ops[at].outputs)
        if any(reader not in members for reader, _ in readers.get((at, port), ()))
    ]
    last = _sinks(leaving, members, ops)
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        if len(last) == 1:
            yield node.name, last[0]
        return
    if isinstance(value, (tuple, list)) and len({at for at, _ in last}) == 1:
        at = last[0][0]
        for user in node.users:
            index = user.args[1] if len(user.args) > 1 and user.op == "call_function" else None
            is_alone = ops[at].outputs == 1 and index == 0
            if isinstance(index, int) and (is_alone or ops[at].outputs == len(value) > index >= 0):
                yield user.name, (at, index)


def _sinks(places: Sequence[Place], members: set[int], ops: Sequence[Op]) -> list[Place]:
    """Those that no other one is computed from, within the group."""
    sources: set[int] = set()
    waiting = [at for at, _ in places]
    seen: set[int] = set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        inside = [source for source, _ in ops[at].inputs if source in members]
        sources.update(inside)
        waiting += inside
    return [place for place in places if place[0] not in sources]


def _in_order(found: Mapping[str, Place], gm: GraphModule) -> dict[str, Place]:
    return {node.name: found[node.name] for node in gm.graph.nodes if node.name in found}
