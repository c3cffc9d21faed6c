"""Show the graphs of each frame at each stage, how many nodes each has, and its most frequent ops."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from idbg.analysis.ops import is_overload, short_name
from idbg.format.amounts import counted
from idbg.schema.graphs import Graph, Node
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views.frame_graphs import compile_words
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Refs, Row, Section, Table, words

TITLE = "Graphs"
_OPS = 6  # of a graph, in its row
_COLUMNS = (Column("nodes", "count", 2), Column("ops", "text", 1, 12))


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a frame; below it its graphs, each with the ops that it has most of."""
    if not run.graphs:
        return Section(TITLE, "no graphs: nothing was compiled")
    frames = _by_frame(run)
    rows = [
        Row(
            ("frame", frame),
            compile_words(run, frame),
            rows=[_graph(graph) for graph in graphs],
            open="all",
            refs=Refs(frame=frame),
            opens="fold",
        )
        for frame, graphs in frames.items()
    ]
    summary = f"{counted(count(run), 'graph')} of {counted(len(frames), 'frame')}"
    return Section(TITLE, summary, count(run), "ok", (Table(_COLUMNS, rows, "graph"),))


def count(run: Run) -> int:
    """All graphs."""
    return len(run.graphs)


def _graph(graph: Graph) -> Row:
    ops = _ops(graph)
    most = ", ".join(f"{op} {count}" for op, count in ops.most_common(_OPS))
    more = f", and {counted(len(ops) - _OPS, 'other op')}" if len(ops) > _OPS else ""
    first: Node | None = next((node for node in graph.nodes if node.op.startswith("call")), None)
    return Row(
        ("graph", graph.id.frame, graph.id.stage, graph.id.part),
        words(graph.id.stage + (f" ({graph.id.part})" if graph.id.part else "")),
        (Cell(len(graph.nodes)), Cell(most + more, "dim")),
        refs=Refs(nodes=(graph.node_id(first.name),) if first is not None else (), frame=graph.id.frame),
        opens="node" if first is not None else "",
    )


def as_json(run: Run) -> object:
    """Each graph: its frame, stage and part, how many nodes, and how many of each op."""
    return [
        {**picked(graph.id, "frame stage part"), "nodes": len(graph.nodes), "ops": dict(_ops(graph).most_common())}
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


@lru_cache(maxsize=4096)
def _called(target: str) -> str:
    name = short_name(target)
    overload = target.rpartition(".")[2]
    return f"{name}.{overload}" if is_overload(target) and overload not in ("default", name) else name


def op_of(node: Node) -> str:
    """What a node does, in a word: "convolution", "add.Tensor", "weight"."""
    if node.op == "placeholder":
        return node.role if node.role in ("weight", "buffer", "tangent", "saved") else "input"
    if node.op == "call_module":
        return node.module_class or "module"
    return _called(node.target) if node.op.startswith("call") else node.op


def shape_of(node: Node) -> str:
    """The first tensor's dtype and shape, and how many more there are."""
    if not node.tensors:
        return ""
    more = f" +{len(node.tensors) - 1}" if len(node.tensors) > 1 else ""
    return f"{node.tensors[0]}{more}"
