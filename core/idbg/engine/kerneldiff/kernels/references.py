"""Compute the nodes of a post-grad graph from the values that the graph was called with.

The graph is computed twice: with floating arithmetic in float64, and in eager in its own dtypes. A node is computed on
demand and dropped after its last use, so that about as many activations are held as in the compiled program, once in
their own dtype and once in float64. The inputs are held in their own dtype only.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

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


class References:
    """The values of a graph's nodes for one set of inputs, which must not be written to. `wanted`: how many buffers
    hold each node; `release` releases one.
    """

    def __init__(self, gm: GraphModule, inputs: Iterable[object], wanted: Mapping[str, int]) -> None:
        self.gm = gm
        self.memory = current_memory()
        self.nodes = {node.name: node for node in gm.graph.nodes}
        self.order = {node: place for place, node in enumerate(gm.graph.nodes)}
        self.barriers = [node for node in gm.graph.nodes if changes_more(node)]
        self.values: dict[Node, ReferenceValue | NotComputable] = {}
        placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.changed = {node for barrier in self.barriers for node in changed_by(barrier)}
        for node, value in zip(placeholders, inputs, strict=True):
            self.values[node] = self._apart(node, ReferenceValue(AS_OWN, value))
        needed = self._before(name for name in wanted if name in self.nodes)
        self.uses = Counter(source for node in needed for source in self._sources(node))
        self.uses.update({self.nodes[name]: count for name, count in wanted.items() if name in self.nodes})

    def value(self, name: str) -> ReferenceValue:
        """The node's value, which stays in memory until `release`. Raises NotComputable."""
        with torch.no_grad(), WithinMemory(self.memory):
            for node in sorted(self._before([name], self.values), key=self.order.__getitem__):
                self.values[node] = self._computed(node)
                for source in self._sources(node):
                    self._used(source)
        value = self.values[self.nodes[name]]
        if isinstance(value, NotComputable):
            raise value
        self.memory.pin((value.wide, value.own))
        return value

    def set_actual(self, name: str, actual: Tensor) -> None:
        """Use this as the node's value: for random numbers, which are what the compiled program drew."""
        if self.nodes[name] not in self.values:
            self.values[self.nodes[name]] = ReferenceValue(AS_OWN, actual.clone())

    def release(self, name: str) -> None:
        """Release one of the buffers that hold this node; what `value` returned may move from now on."""
        self.memory.unpin()
        self._used(self.nodes[name])

    def _used(self, node: Node) -> None:
        self.uses[node] -= 1
        if self.uses[node] <= 0 and node not in self.barriers:
            self.values[node] = _DROPPED

    def _sources(self, node: Node) -> list[Node]:
        """What is computed before the node. A node that changes its arguments comes after all before it, and before all
        after it.
        """
        if node in self.barriers:
            return [other for other in self.order if self.order[other] < self.order[node] and other.op != "output"]
        last = [barrier for barrier in self.barriers if self.order[barrier] < self.order[node]][-1:]
        return [*node.all_input_nodes, *last] if node.op != "placeholder" else []

    def _before(self, names: Iterable[str], known: Collection[Node] = ()) -> set[Node]:
        """These nodes and all that they are computed from, except known ones."""
        needed: set[Node] = set()
        waiting = [self.nodes[name] for name in names]
        while waiting:
            node = waiting.pop()
            if node not in needed and node not in known:
                needed.add(node)
                waiting += self._sources(node)
        return needed

    def _computed(self, node: Node) -> ReferenceValue | NotComputable:
        known: dict[Node, ReferenceValue] = {}
        for source in node.all_input_nodes:
            value = self.values[source]
            if isinstance(value, NotComputable):
                return value
            known[source] = value
        try:
            return self._apart(node, computed(self.gm, node, known))
        except NotComputable as unknown:
            return unknown

    def _apart(self, node: Node, value: ReferenceValue) -> ReferenceValue:
        return value.apart() if node in self.changed and value.wide is AS_OWN else value


_DROPPED = NotComputable("it is needed no more")
