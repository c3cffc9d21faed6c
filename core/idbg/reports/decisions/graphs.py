"""Which graphs were there at which stage, of how many nodes, and of which ops?"""

from collections import Counter
from collections.abc import Iterable, Iterator

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.ops import short_name
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.schema.graphs import Frame, Graph
from idbg.schema.runs import Run

OPS = 6  # of a graph, in text


def text(run: Run) -> Iterable[str]:
    """A line for each frame, and one for each of its graphs with the ops that it has most of."""
    if not run.graphs:
        yield "nothing was compiled: there are no graphs"
    for name, graphs in _by_frame(run).items():
        frame = run.frames.get(name, Frame(name, "?"))
        yield f"{name} {spoken(frame)}   {near_place(frame.file, frame.line)}".rstrip()
        for graph in graphs:
            ops = _ops(graph)
            most = ", ".join(f"{op} {count}" for op, count in ops.most_common(OPS))
            more = f", and {counted(len(ops) - OPS, 'other op')}" if len(ops) > OPS else ""
            stage = graph.id.stage + (f" ({graph.id.part})" if graph.id.part else "")
            yield f"  {stage:<21} {counted(len(graph.nodes), 'node'):>11}   {most}{more}"


def as_json(run: Run) -> object:
    """Each graph: its frame, stage and part, how many nodes, and how many of each op."""
    return [
        {
            "frame": graph.id.frame,
            "stage": graph.id.stage,
            "part": graph.id.part,
            "nodes": len(graph.nodes),
            "ops": dict(_ops(graph).most_common()),
        }
        for graph in run.graphs.values()
    ]


def _by_frame(run: Run) -> dict[str, list[Graph]]:
    frames: dict[str, list[Graph]] = {}
    for graph in run.graphs.values():
        frames.setdefault(graph.id.frame, []).append(graph)
    return frames


def _ops(graph: Graph) -> Counter[str]:
    return Counter(_calls(graph))


def _calls(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.op.startswith("call_"):
            yield short_name(node.target)
