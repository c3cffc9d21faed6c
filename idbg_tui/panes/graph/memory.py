"""List what is in memory at the shown graph's peak, largest first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from idbg.analysis.liveness import Alive, MemoryProfile
from idbg.format import file_names
from idbg.format.amounts import and_unsized, counted, size
from idbg.format.glyphs import LEVELS
from idbg.schema.graphs import Graph, Node
from idbg.views import tree
from idbg.views.frame_graphs import graph_words
from idbg.views.tree import Cell, Column, Refs, Section, Table, words
from idbg_tui.panes.graph.columns import op_of, shape_of
from idbg_tui.panes.graph.title import list_title
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sections
from idbg_tui.widgets.section_rows import Look, Row, picture, sentences


def title(state: State) -> str:
    """The title of the list, with the stage of the graph that it is about."""
    return list_title("The peak of memory", state)


_COLUMNS = (
    *(Column("size", "bytes", least=10), Column("share", "share", least=7), Column("", "bar", 0)),
    *(Column("operation", rank=1), Column("shape", rank=2, least=18), Column("from", rank=2, least=12)),
)


def rows(state: State, look: Look) -> list[Row]:
    """The graph's memory over time, and each tensor that is alive at the peak."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), look, "dim"))
    profile = state.costs.profile(graph)
    if profile is None:
        return list(sentences("not counted yet: this takes a moment for a graph of this size", look, "dim"))
    if not profile.alive:
        unsized = f": {counted(profile.unsized, 'tensor')} of unknown size" if profile.unsized else ""
        return list(sentences(f"no tensor of this graph takes memory that is known{unsized}", look, "dim"))
    lines = [*_over_time(profile, look.width), *sentences(_summary(graph, profile), look)]
    for other, peak in _larger_peak(state, graph, profile):
        where = f"{graph_words(other.id)} needs more: {size(peak.peak_bytes)} at {peak.peak_at}; enter goes there"
        node = other.node_id(peak.peak_at)
        lines += (replace(row, nodes=(node,)) for row in sentences(where, look, "accent"))
    alive = sections.rows(Section("", "", body=(_table(graph, profile),)), look)
    return [*lines, *sentences("", look), *(replace(row, here=at == 1) for at, row in enumerate(alive))]


def _table(graph: Graph, profile: MemoryProfile) -> Table:
    """Each tensor that is alive at the peak."""
    made = []
    for place, (one, shape) in enumerate(zip(profile.alive, _shapes(graph, profile.alive), strict=True)):
        node = graph.by_name[one.node]
        figures = one.nbytes, one.nbytes / profile.peak_bytes, one.nbytes / profile.alive[0].nbytes
        cells = (*map(Cell, figures), Cell(op_of(node), "dim"), Cell(shape), Cell(_from(node), "dim"))
        refs = Refs(nodes=(graph.node_id(one.node),), file=node.file, line=node.line)
        made.append(tree.Row((one.node, place), words((one.node, "strong")), cells, refs=refs, opens="node"))
    return Table(_COLUMNS, made, "tensor", names=True)


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


def _larger_peak(state: State, graph: Graph, profile: MemoryProfile) -> Iterator[tuple[Graph, MemoryProfile]]:
    """The graph of the shown level that needs the most memory, with its profile, if it is another than `graph`."""
    peak = queries.peak(state)
    if peak is not None and peak[0] is not graph and peak[1].peak_bytes > profile.peak_bytes:
        yield peak


def _over_time(profile: MemoryProfile, width: int) -> list[Row]:
    """A line of bars over the graph's nodes in order: its height is the most bytes that are in memory there,
    from the least of the whole graph to the most.
    """
    live, least, top = profile.live_bytes, min(profile.live_bytes), profile.peak_bytes
    ends = f" {size(least)} ", f" {size(top)}"
    cells = max(10, min(width - 1 - sum(map(len, ends)), len(live)))
    bounds = [index * len(live) // cells for index in range(cells + 1)]
    most = [max(live[first:last], default=least) for first, last in pairwise(bounds)]
    steps = [LEVELS[(one - least) * (len(LEVELS) - 1) // max(1, top - least)] for one in most]
    over = [(step, "accent" if one == top else "dim") for step, one in zip(steps, most, strict=True)]
    return picture([[(ends[0], ""), *over, (ends[1], "")]])


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
