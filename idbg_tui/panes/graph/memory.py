"""List what is in memory at the shown graph's peak, largest first."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from idbg.analysis.liveness import Alive, MemoryProfile
from idbg.format import file_names
from idbg.format.amounts import and_unsized, column_size, counted, size
from idbg.format.glyphs import LEVELS, MARKS
from idbg.schema.graphs import Graph, Node
from idbg_tui.panes.graph.columns import op_of, shape_of
from idbg_tui.panes.graph.title import list_title
from idbg_tui.state import queries, stages
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.cutting import cut_shape
from idbg_tui.widgets.lines import StyledRow, clip, fit
from idbg_tui.widgets.listing import Entry, sentences

_BAR = 12  # cells
_WIDE = 100  # cells, from which a row has a bar, and says what the node is


def title(state: State) -> str:
    """The title of the list, with the stage of the graph that it is about."""
    return list_title("The peak of memory", state)


def entries(state: State, width: int) -> list[Entry]:
    """The graph's memory over time, and each tensor that is alive at the peak."""
    graph = state.graph
    if graph is None:
        return list(sentences(why_no_graph(state), width, "dim"))
    profile = state.costs.profile(graph)
    if profile is None:
        return list(sentences("not counted yet: this takes a moment for a graph of this size", width, "dim"))
    if not profile.alive:
        unsized = f": {counted(profile.unsized, 'tensor')} of unknown size" if profile.unsized else ""
        return list(sentences(f"no tensor of this graph takes memory that is known{unsized}", width, "dim"))
    names = max(len(one.node) for one in profile.alive)
    shown = _shapes(graph, profile.alive)
    shapes = max(map(len, shown))
    lines = [*_over_time(profile, width), *sentences(_summary(graph, profile), width)]
    for other, peak in _larger_peak(state, graph, profile):
        where = f"{stages.name_of(other.id)} needs more: {size(peak.peak_bytes)} at {peak.peak_at}; enter goes there"
        lines += (Entry(entry.draw, other.node_id(peak.peak_at)) for entry in sentences(where, width, "accent"))
    lines += sentences("", width)
    return lines + [
        _alive(graph, profile, one, shape, (names, shapes)) for one, shape in zip(profile.alive, shown, strict=True)
    ]


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


def _over_time(profile: MemoryProfile, width: int) -> Iterator[Entry]:
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
    yield Entry.fixed([(ends[0], ""), *over, (ends[1], "")], picture=True)


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


def _alive(graph: Graph, profile: MemoryProfile, one: Alive, shape_words: str, widths: tuple[int, int]) -> Entry:
    node = graph.by_name[one.node]
    share = 100 * one.nbytes / profile.peak_bytes
    bar = MARKS["rule"][0] * max(1, round(_BAR * one.nbytes / profile.alive[0].nbytes))

    def draw(width: int) -> StyledRow:
        wide = width >= _WIDE
        name, shape = min(widths[0], 40 if wide else 24), min(widths[1], 26 if wide else 18)
        start: StyledRow = [
            (f" {column_size(one.nbytes):>10}  {share:>5.1f} %  ", ""),
            (f"{bar:<{_BAR}}  " if wide else "", "accent"),
            (fit(one.node, name) + "  ", "strong"),
            (fit(op_of(node), 16) + "  " if wide else "", "dim"),
            (fit(cut_shape(shape_words, shape), shape) + "  ", ""),
        ]
        return [*start, (clip(_from(node), width - sum(len(text) for text, _ in start)), "dim")]

    return Entry(draw, graph.node_id(one.node), here=one is profile.alive[0])


def _from(node: Node) -> str:
    """Where a node comes from: the user's file, line and code; else its module, or the attribute that it is."""
    if node.file:
        return f"{file_names.place(node.file, node.line)}  {node.code.strip()}"
    return node.module or (node.target if node.op == "get_attr" else "")
