"""Compute nodes of a graph from known values: in float64 and in their own dtypes, or in these alone.

A node is computed on demand and dropped after its last use, so that about as many activations are held as in the
compiled program, once in their own dtype and once in float64. Known values are held in their own dtype only.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.kerneldiff.float64.memory import WithinMemory, current_memory
from idbg.engine.kerneldiff.kernels.values import (
    AS_OWN,
    NotComputable,
    ReferenceValue,
    changed_by,
    changes_more,
    computed,
)


@dataclass(frozen=True)
class NodeState:
    """A node's value after these nodes have changed it in place."""

    node: Node
    changes: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """What is computed for it, in order."""
        return (*self.changes, self.node)


class OrderedGraph:
    """A graph, and the order of its nodes. `changed_at`: the nodes that change a node's value in place."""

    def __init__(self, gm: GraphModule) -> None:
        self.gm = gm
        self.place = {node: place for place, node in enumerate(gm.graph.nodes)}
        self.placeholders = [node for node in self.place if node.op == "placeholder"]
        self.changing = {node: changed_by(node) for node in self.place if changes_more(node)}
        self.changed_at: dict[Node, set[Node]] = {}
        for change, nodes in self.changing.items():
            for node in nodes:
                self.changed_at.setdefault(node, set()).add(change)

    def upstream(self, nodes: Iterable[Node], known: Collection[Node]) -> list[Node]:
        """These nodes and all that they are computed from, except known ones, in order."""
        found: set[Node] = set()
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node not in found and node not in known:
                found.add(node)
                waiting += node.all_input_nodes
        return sorted(found, key=self.place.__getitem__)


class Interpreter:
    """The values of a graph's nodes that follow from `known` ones, which must not be written to. `wanted`: how many
    times each node will be released; `before`: nodes that change others in place, besides those that these need.
    """

    def __init__(
        self,
        graph: OrderedGraph,
        known: Mapping[Node, object],
        wanted: Mapping[Node, int],
        before: Iterable[Node] = (),
        *,
        exact: bool = True,
    ) -> None:
        self.graph, self.exact = graph, exact
        self.memory = current_memory()
        self.nodes = graph.upstream((*wanted, *before), known)
        self.uses = Counter(source for node in self.nodes for source in node.all_input_nodes)
        self.uses.update(wanted)
        self.changes = [node for node in self.nodes if node in graph.changing]
        self.changed = {node for change in self.changes for node in graph.changing[change]}
        self.values: dict[Node, ReferenceValue | NotComputable] = {}
        for node, value in known.items():
            self.values[node] = self._apart(node, ReferenceValue(AS_OWN, value))

    @classmethod
    def from_inputs(
        cls, graph: OrderedGraph, inputs: Iterable[object], wanted: Mapping[Node, int], *, exact: bool = True
    ) -> "Interpreter":
        """For the graph's inputs, which are changed in place as the graph does it before the last wanted node."""
        last = max(map(graph.place.__getitem__, wanted), default=0)
        before = [change for change in graph.changing if graph.place[change] < last]
        return cls(graph, dict(zip(graph.placeholders, inputs, strict=True)), wanted, before, exact=exact)

    def value(self, state: NodeState) -> ReferenceValue:
        """The value, which stays in memory until `release`. Raises NotComputable."""
        value = self._computed(state)
        self.memory.pin((value.wide, value.own))
        return value

    def last_values(self, states: Iterable[NodeState]) -> list[ReferenceValue]:
        """All that is wanted, after all of it was computed: it moves no more. Raises NotComputable."""
        values = [self._computed(state) for state in states]
        self.memory.release([(value.wide, value.own) for value in values])
        return values

    def _computed(self, state: NodeState) -> ReferenceValue:
        with torch.no_grad(), WithinMemory(self.memory):
            *_, value = map(self._run_to, state.nodes)
        return value

    def set_actual(self, node: Node, actual: Tensor) -> None:
        """Use this as the node's value: for random numbers, which are what the compiled program drew."""
        if node not in self.values:
            self.values[node] = ReferenceValue(AS_OWN, actual.clone())

    def release(self, state: NodeState) -> None:
        """Release one of the buffers that hold this value; what `value` returned may move from now on."""
        self.memory.unpin()
        self._used(state.nodes)

    def _run_to(self, last: Node) -> ReferenceValue:
        """Compute the node. What changes others in place comes after all before it, and before all after it. Raises
        NotComputable.
        """
        place = self.graph.place
        due = [place[node] for node in self.changes if place[node] <= place[last] and node not in self.values]
        before = {node for node in self.nodes if due and place[node] <= due[-1] and node not in self.values}
        for node in sorted(before.union(self.graph.upstream([last], self.values)), key=place.__getitem__):
            self.values[node] = self._value(node)
            self._used(node.all_input_nodes)
        if isinstance(value := self.values[last], NotComputable):
            raise value.with_traceback(None)
        return value

    def _used(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            self.uses[node] -= 1
            if self.uses[node] <= 0:
                self.values[node] = _DROPPED

    def _value(self, node: Node) -> ReferenceValue | NotComputable:
        known: dict[Node, ReferenceValue] = {}
        for source in node.all_input_nodes:
            value = self.values[source]
            if isinstance(value, NotComputable):
                return value
            known[source] = value
        try:
            return self._apart(node, computed(self.graph.gm, node, known, exact=self.exact))
        except NotComputable as unknown:
            return unknown

    def _apart(self, node: Node, value: ReferenceValue) -> ReferenceValue:
        return value.apart() if node in self.changed and value.wide is AS_OWN else value


_DROPPED = NotComputable("it is needed no more")
