"""Find the graph, and the node of it, that shows best what a frame was compiled to."""

from collections.abc import Iterable

from idbg.analysis.decisions.frames import spoken
from idbg.format.verdicts import STAGE_NAMES
from idbg.schema.graphs import CompileCall, GraphId, NodeId, Part
from idbg.schema.runs import Run
from idbg.views.tree import Place, Span, Words, words


def compile_words(run: Run, frame: str, part: Part = "") -> Words:
    """Which compile: "0/0 inference  f  model.py:12"."""
    known = run.frames.get(frame)
    name = Span(f"{frame} {part}".rstrip(), "accent")
    if known is None:
        return words(name)
    return words(name, f"  {spoken(known)}  ", *([Place(known.file, known.line)] if known.file else []))


def call_words(call: CompileCall | None, file: str, line: int) -> Words:
    """The line of the torch.compile in which a function is compiled, where that is not the function's own line."""
    if call is None or not call.file or (call.file, call.line) == (file, line):
        return ()
    return words(("  torch.compile at ", "dim"), Place(call.file, call.line))


def nodes_of(run: Run, frame: str, part: Part, names: Iterable[str]) -> tuple[NodeId, ...]:
    """Those of the nodes that the compile's post-grad graph has."""
    graph = GraphId(frame, "post_grad", part)
    known = run.graphs[graph].by_name if graph in run.graphs else {}
    return tuple(NodeId(graph, name) for name in names if name in known)


def graph_words(graph: GraphId) -> str:
    """A stage as it reads in a sentence: "inference", "post-grad backward"."""
    part = " backward" if graph.stage == "post_grad" and graph.part == "backward" else ""
    return STAGE_NAMES[graph.stage] + part


class FrameGraphs:
    """The graphs of each frame of a run, looked up once. A frame that is traced again loses the graphs it had."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._of: dict[str, list[GraphId]] = {}
        for graph in run.graphs:
            self._of.setdefault(graph.frame, []).append(graph)

    def graph(self, frame: str) -> GraphId | None:
        """The representative one."""
        known = [graph for graph in self._of.get(frame, ()) if graph in self._run.graphs]
        return representative(known) if known else None

    def nodes(self, frame: str) -> tuple[NodeId, ...]:
        """The first call of the representative one."""
        graph = self.graph(frame)
        known = self._run.graphs.get(graph) if graph is not None else None
        first = next((node for node in known.nodes if node.op.startswith("call")), None) if known is not None else None
        return (known.node_id(first.name),) if known is not None and first is not None else ()


def representative(graphs: Iterable[GraphId]) -> GraphId:
    """Of one or more graphs the forward or inference graph if it is there, else the Dynamo graph, else the first."""
    mine = list(graphs)
    for stages in (("inference", "forward"), ("dynamo",)):
        for graph in mine:
            if graph.stage in stages:
                return graph
    return mine[0]
