"""Show what is in memory at a graph's peak, largest first, and how much over its nodes."""

from collections.abc import Iterator, Sequence

from idbg.analysis.liveness import Alive, MemoryProfile, whole_copies
from idbg.format import file_names
from idbg.format.amounts import and_unsized, counted, size
from idbg.schema.graphs import Graph, Node
from idbg.views.frame_graphs import graph_words
from idbg.views.graphs import op_of, shape_of
from idbg.views.tree import Block, Cell, Chart, Column, Refs, Row, Section, Table, words

TITLE = "The peak of memory"
_COLUMNS = (
    *(Column("size", "bytes", least=10), Column("share", "share", least=7), Column("", "bar", 0)),
    *(Column("operation", rank=1), Column("shape", rank=2, least=18), Column("from", rank=2, least=12)),
)


def view(graph: Graph, profile: MemoryProfile | None, most: tuple[Graph, MemoryProfile] | None = None) -> Section:
    """A row a tensor that is alive at the peak. `most`: the graph of the same level that needs the most memory."""
    if profile is None:
        return Section(TITLE, "not counted yet: this takes a moment for a graph of this size", None, "unknown")
    if not profile.alive:
        unsized = f": {counted(profile.unsized, 'tensor')} of unknown size" if profile.unsized else ""
        return Section(TITLE, f"no tensor of this graph takes memory that is known{unsized}")
    chart = Chart("memory", profile.live_bytes)
    body: list[Block] = [Row("peak", words(_summary(graph, profile)), charts=(chart,))]
    if most is not None and most[0] is not graph and most[1].peak_bytes > profile.peak_bytes:
        other, peak = most
        where = f"{graph_words(other.id)} needs more: {size(peak.peak_bytes)} at {peak.peak_at}; enter goes there"
        refs = Refs(nodes=(other.node_id(peak.peak_at),))
        body.append(Row("more", words((where, "accent")), refs=refs, opens="node"))
    body += _copies(graph)
    body.append(Table(_COLUMNS, list(_tensors(graph, profile)), "tensor", names=True))
    return Section(TITLE, "", len(profile.alive), body=tuple(body))


def _copies(graph: Graph) -> Iterator[Row]:
    """What functionalization made copies of, though the program writes to a part of it in place."""
    for copy in whole_copies(graph) if graph.id.stage == "post_grad" else ():
        write = graph.by_name[copy.write]
        users = f" for `{write.code.strip()}` ({file_names.place(write.file, write.line)})" if write.file else ""
        text = (
            f"{copy.node} copies all of {copy.argument} ({size(copy.nbytes)}){users}, and {copy.back} copies it back: "
            "functionalization made the write in place one of a copy, in each call"
        )
        refs = Refs(nodes=(graph.node_id(copy.node),), file=write.file, line=write.line)
        yield Row(("copy", copy.node), words((text, "fallback")), refs=refs, opens="node")


def _tensors(graph: Graph, profile: MemoryProfile) -> Iterator[Row]:
    for place, (one, shape) in enumerate(zip(profile.alive, _shapes(graph, profile.alive), strict=True)):
        node = graph.by_name[one.node]
        figures = one.nbytes, one.nbytes / profile.peak_bytes, one.nbytes / profile.alive[0].nbytes
        cells = (*map(Cell, figures), Cell(op_of(node), "dim"), Cell(shape), Cell(_from(node), "dim"))
        refs = Refs(nodes=(graph.node_id(one.node),), file=node.file, line=node.line)
        yield Row(("tensor", one.node, place), words((one.node, "strong")), cells, refs=refs, opens="node")


def _shapes(graph: Graph, alive: Sequence[Alive]) -> list[str]:
    """How the shape of each tensor in `alive` reads. The tensors of a tuple share one node name: they differ by
    their bytes, and of equal ones each is listed once.
    """
    left = {one.node: list(graph.by_name[one.node].tensors) for one in alive}
    shapes = []
    for one in alive:
        tensors = left[one.node]
        part = next((tensor for tensor in tensors if tensor.nbytes == one.nbytes), None)
        if part is not None:
            tensors.remove(part)
        shapes.append(str(part) if part is not None else shape_of(graph.by_name[one.node]))
    return shapes


def _summary(graph: Graph, profile: MemoryProfile) -> str:
    node = graph.by_name[profile.peak_at]
    place = next(index for index, other in enumerate(graph.nodes, 1) if other is node)
    line = f" ({file_names.place(node.file, node.line)})" if node.file else ""
    given = sum(one.nbytes for one in profile.alive if graph.by_name[one.node].role in ("weight", "buffer"))
    weights = f"; weights and buffers take {size(given)} of it" if given else ""
    return (
        f"{and_unsized(profile.peak_bytes, profile.unsized)} at {node.name}{line}, node {place:,} of "
        f"{len(graph.nodes):,}: {counted(len(profile.alive), 'tensor')} alive{weights}"
    )


def _from(node: Node) -> str:
    """Where a node comes from: the user's file, line and code; else its module, or the attribute that it is."""
    if node.file:
        return f"{file_names.place(node.file, node.line)}  {node.code.strip()}"
    return node.module or (node.target if node.op == "get_attr" else "")
