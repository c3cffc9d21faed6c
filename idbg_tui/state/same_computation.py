"""Pair the lines of two stages of a frame by the nodes that are the same computation."""

from idbg.analysis.provenance import Provenance
from idbg.schema.graphs import Graph, NodeId

_MOST = 5_000  # nodes of both graphs: of more it takes seconds to find those without a counterpart


class SameComputation:
    """The lines of two stages of a frame, paired by the nodes that are the same computation."""

    def __init__(self, left: Graph, right: Graph, provenance: Provenance) -> None:
        self._graphs, self._provenance = (left, right), provenance
        self._nodes = tuple(
            {node.code_line: node.name for node in graph.nodes if node.code_line} for graph in self._graphs
        )
        self.marks: tuple[frozenset[int], frozenset[int]] = frozenset(), frozenset()
        if len(left.nodes) + len(right.nodes) <= _MOST:
            self.marks = self._alone(0), self._alone(1)

    def _alone(self, side: int) -> frozenset[int]:
        """The lines of nodes without a counterpart."""
        return frozenset(line for line in self._nodes[side] if not self._counterparts(side, line))

    def _counterparts(self, side: int, line: int) -> list[int]:
        node, other = NodeId(self._graphs[side].id, self._nodes[side][line]), self._graphs[1 - side]
        same = self._provenance.counterparts(node, other.id)
        return [found.code_line for each in same if (found := other.by_name.get(each.name)) and found.code_line]

    def beside(self, side: int, line: int) -> int:
        """The line of the counterpart; for a line without one, of the nearest node above that has one."""
        for above in sorted((each for each in self._nodes[side] if each <= line), reverse=True):
            if found := self._counterparts(side, above):
                return found[-1]
        return 1
