"""The facts of a graph that rules about a whole graph read."""

from functools import cached_property

from idbg.analysis.liveness import MemoryProfile, memory_profile
from idbg.analysis.sizes import stored_bytes
from idbg.schema.graphs import Graph


class GraphFacts:
    """One graph, with what is costly to know of it: found when a rule first asks, and kept."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._profiles: dict[bool, MemoryProfile] = {}

    def profile(self, *, weights: bool) -> MemoryProfile:
        """What is alive when, with the weights counted or not."""
        if weights not in self._profiles:
            self._profiles[weights] = memory_profile(self.graph, weights=weights)
        return self._profiles[weights]

    @cached_property
    def position(self) -> dict[str, int]:
        """Node name -> index in the graph."""
        return {node.name: index for index, node in enumerate(self.graph.nodes)}

    @cached_property
    def weights(self) -> dict[int, int]:
        """Index of each weight and buffer that the graph is given -> bytes. Branches of a torch.cond have none more."""
        return {
            index: sum(stored_bytes(tensor) or 0 for tensor in node.tensors)
            for index, node in enumerate(self.graph.nodes)
            if node.role in ("weight", "buffer") and node.op in ("placeholder", "get_attr") and "." not in node.name
        }
