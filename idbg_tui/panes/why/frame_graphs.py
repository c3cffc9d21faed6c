"""Which graph, and which node of it, shows what a frame became?"""

from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.runs import Run
from idbg_tui.state import stages


class FrameGraphs:
    """The graphs of each frame of a run, looked up once. A frame that is traced anew loses those that it had."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._of: dict[str, list[GraphId]] = {}
        for graph in run.graphs:
            self._of.setdefault(graph.frame, []).append(graph)

    def graph(self, frame: str) -> GraphId | None:
        """The most telling one."""
        known = [graph for graph in self._of.get(frame, ()) if graph in self._run.graphs]
        return stages.telling(known) if known else None

    def nodes(self, frame: str) -> tuple[NodeId, ...]:
        """The first call of the most telling one."""
        graph = self.graph(frame)
        known = self._run.graphs.get(graph) if graph is not None else None
        first = next((node for node in known.nodes if node.op.startswith("call")), None) if known is not None else None
        return (known.node_id(first.name),) if known is not None and first is not None else ()
