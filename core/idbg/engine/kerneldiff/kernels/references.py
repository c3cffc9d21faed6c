"""What should each node of a post-grad graph hold, given what the graph was given?

The graph is computed twice side by side: with floating arithmetic kept in float64, and op by op in the dtypes that it
was written in. A node is computed when it is asked for, and dropped when nothing more needs it: about what the compiled
program holds of its activations at that time is held here too, once in its own dtype and once in float64. The inputs
are held as they were given, in their own dtype alone.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.kerneldiff.kernels.values import (
    AS_OWN,
    NotComputable,
    ReferenceValue,
    changed_by,
    changes_more,
    computed,
)


class References:
    """The values of a graph's nodes for one set of inputs, which nothing else may write to.

    `wanted` says how many buffers hold each node: `done` gives one back.
    """

    def __init__(self, gm: GraphModule, inputs: Iterable[object], wanted: Mapping[str, int]) -> None:
        self.gm = gm
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
        """The node's value. Raises Unknown."""
        with torch.no_grad():
            for node in sorted(self._before([name], self.values), key=self.order.__getitem__):
                self.values[node] = self._computed(node)
                for source in self._sources(node):
                    self._used(source)
        value = self.values[self.nodes[name]]
        if isinstance(value, NotComputable):
            raise value
        return value

    def take(self, name: str, actual: Tensor) -> None:
        """Hold this as the node's value: random numbers are what the compiled program drew."""
        if self.nodes[name] not in self.values:
            self.values[self.nodes[name]] = ReferenceValue(AS_OWN, actual.clone())

    def done(self, name: str) -> None:
        """A buffer that holds this node has been seen."""
        self._used(self.nodes[name])

    def _used(self, node: Node) -> None:
        self.uses[node] -= 1
        if self.uses[node] <= 0 and node not in self.barriers:
            self.values[node] = _DROPPED

    def _sources(self, node: Node) -> list[Node]:
        """What must be computed before the node: also all before an op that changes its arguments, and that op before
        all after it.
        """
        if node in self.barriers:
            return [other for other in self.order if self.order[other] < self.order[node] and other.op != "output"]
        last = [barrier for barrier in self.barriers if self.order[barrier] < self.order[node]][-1:]
        return [*node.all_input_nodes, *last] if node.op != "placeholder" else []

    def _before(self, names: Iterable[str], known: Collection[Node] = ()) -> set[Node]:
        """These nodes and all that they are computed from, without what is known."""
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
        return value.apart() if node in self.changed and value.held is AS_OWN else value


_DROPPED = NotComputable("it is needed no more")
