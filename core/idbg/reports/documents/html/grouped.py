"""Divide a graph into groups that are small enough to draw: by modules, and large ones into parts.

A group's items are nodes (their index) and groups (`~index`), in the graph's order: lines between them never go back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from idbg.analysis.layered import GAP, HEIGHT, Placing, placed
from idbg.analysis.outline import INPUTS, outline
from idbg.schema.graphs import Graph

MOST = 40  # items of a group: a drawing of more is a thicket
APART = 8  # items that nothing joins, as a graph's inputs: more are set in rows, without lines to their readers
ROW_WIDTH = 900  # pixels of such a row
NEAR = 4  # nodes outside of a group that are drawn by name on either side of it; more are one box
CHARACTER, MARGIN, NARROWEST, WIDEST = 7, 20, 100, 200  # pixels: of a monospace letter, around a label, of a box


@dataclass
class Group:
    """A module's nodes, or a part of many: nodes `first` to `last` (exclusive)."""

    title: str
    kind: str  # the module's class; "inputs"; "part"
    parent: int
    first: int
    last: int
    twin: str = ""
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Drawing:
    """A group's boxes: its items; then nodes outside that it reads or that read it (`outside`, by index); then one box
    for those above, and one for those below, that are too many for that (`more` says how many); the lines between them.
    """

    outside: tuple[int, ...]
    more: tuple[int, int]
    lines: tuple[tuple[int, int], ...]
    widths: tuple[int, ...]
    placing: Placing


def groups(graph: Graph) -> list[Group]:
    """The whole graph first; a group stands after the one that it is in."""
    built = outline(graph, set())
    found = [Group("", "", -1, 0, len(graph.nodes))]
    of_heading: list[int] = []
    for heading in built.headings:
        parent = of_heading[heading.parent] if heading.parent >= 0 else 0
        kind = INPUTS if heading.key == INPUTS else heading.kind
        of_heading.append(len(found))
        found[parent].items.append(~len(found))
        found.append(Group(heading.title, kind, parent, heading.first, heading.last, heading.twin))
    for node, heading_of in enumerate(built.owner):
        found[of_heading[heading_of] if heading_of >= 0 else 0].items.append(node)
    for group in found:
        group.items.sort(key=lambda item: found[~item].first if item < 0 else item)
    for at in range(len(found)):
        _part(found, at)
    return found


def _part(found: list[Group], at: int) -> None:
    """Put the items of a group that has too many into parts of it, and those into parts, until none has."""
    group = found[at]
    while len(group.items) > MOST:
        # full parts, so that few are needed; what is left over is the last
        parts = [group.items[start : start + MOST] for start in range(0, len(group.items), MOST)]
        group.items = []
        for items in parts:
            first = found[~items[0]].first if items[0] < 0 else items[0]
            last = found[~items[-1]].last if items[-1] < 0 else items[-1] + 1
            for item in items:
                if item < 0:
                    found[~item].parent = len(found)
            group.items.append(~len(found))
            found.append(Group(f"{first + 1:,} to {last:,}", "part", at, first, last, items=items))


def drawings(graph: Graph, found: list[Group]) -> Iterator[Drawing]:
    """The drawing of each group, in their order."""
    group_of = [0] * len(graph.nodes)
    for at, group in enumerate(found):
        for item in group.items:
            if item >= 0:
                group_of[item] = at
    inside: list[dict[tuple[int, int], None]] = [{} for _ in found]
    above: list[dict[tuple[int, int], None]] = [{} for _ in found]  # (node outside, item)
    below: list[dict[tuple[int, int], None]] = [{} for _ in found]  # (item, node outside)
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    for reader, node in enumerate(graph.nodes):
        for source in dict.fromkeys(place[name] for name in node.inputs if name in place):
            _trace(source, reader, group_of, found, inside, above, below)
    known: dict[object, Placing] = {}
    for at, group in enumerate(found):
        yield _drawing(graph, found, group, [*inside[at]], [*above[at]], [*below[at]], known)


def _trace(
    source: int,
    reader: int,
    group_of: list[int],
    found: list[Group],
    inside: list[dict[tuple[int, int], None]],
    above: list[dict[tuple[int, int], None]],
    below: list[dict[tuple[int, int], None]],
) -> None:
    """Enter a line of the graph in the group that has both ends, and in each that has one."""
    upwards = dict(_ways_up(source, group_of[source], found))
    for group, item in _ways_up(reader, group_of[reader], found):
        if group in upwards:
            inside[group][upwards[group], item] = None
            for other, leaving in upwards.items():
                if other == group:
                    return
                below[other][leaving, reader] = None
        above[group][source, item] = None


def _ways_up(node: int, group: int, found: list[Group]) -> Iterator[tuple[int, int]]:
    """Each group that a node is in, the innermost first, with the item of the group that it is in there."""
    item = node
    while group >= 0:
        yield group, item
        item, group = ~group, found[group].parent


def _drawing(
    graph: Graph,
    found: list[Group],
    group: Group,
    inside: list[tuple[int, int]],
    above: list[tuple[int, int]],
    below: list[tuple[int, int]],
    known: dict[object, Placing],
) -> Drawing:
    sources = list(dict.fromkeys(source for source, _ in above))
    readers = list(dict.fromkeys(reader for _, reader in below))
    own = {item: at for at, item in enumerate(group.items)}
    labels = [label(graph, found, item) for item in group.items]
    if not inside and len(labels) > APART:
        widths = tuple(_width(text) for text in labels)
        return Drawing((), (0, 0), (), widths, _in_rows(widths))
    near_above, near_below = (each if len(each) <= NEAR else [] for each in (sources, readers))
    before = len(labels)
    at_above = {source: before + at for at, source in enumerate(near_above)}
    before += len(near_above)
    at_below = {reader: before + at for at, reader in enumerate(near_below)}
    labels += [graph.nodes[node].name for node in (*near_above, *near_below)]
    more = (len(sources) if not near_above else 0, len(readers) if not near_below else 0)
    many_above, many_below = len(labels), len(labels) + bool(more[0])
    labels += ["x" * 16 for count in more if count]
    lines = [(own[start], own[end]) for start, end in inside]
    lines += [(at_above.get(source, many_above), own[item]) for source, item in above]
    lines += [(own[item], at_below.get(reader, many_below)) for item, reader in below]
    unique = tuple(dict.fromkeys(lines))
    widths = tuple(_width(text) for text in labels)
    # boxes above come before those of the group, and those below after them: `placed` reads lines as going onwards
    order = [*at_above.values(), *([many_above] if more[0] else []), *range(len(group.items)), *at_below.values()]
    order += [many_below] if more[1] else []
    key = (widths, unique)  # the layers of a model are drawn alike
    if key not in known:
        known[key] = _placed_in(order, widths, unique)
    return Drawing((*near_above, *near_below), more, unique, widths, known[key])


def _placed_in(order: list[int], widths: tuple[int, ...], lines: tuple[tuple[int, int], ...]) -> Placing:
    rank = {box: at for at, box in enumerate(order)}
    drawn = placed([widths[box] for box in order], [(rank[start], rank[end]) for start, end in lines])
    return Placing(tuple(drawn.boxes[rank[box]] for box in range(len(order))), drawn.lines, drawn.width, drawn.height)


def _in_rows(widths: tuple[int, ...]) -> Placing:
    boxes, across, down = [], 0.0, 0.0
    for width in widths:
        if across and across + width > ROW_WIDTH:
            across, down = 0.0, down + HEIGHT + GAP
        boxes.append((across, down))
        across += width + GAP
    reach = max(x + width for (x, _), width in zip(boxes, widths, strict=True))
    return Placing(tuple(boxes), (), reach, down + HEIGHT)


def label(graph: Graph, found: list[Group], item: int) -> str:
    """What a box says: the node's name, or the module's and how many nodes it has."""
    if item >= 0:
        return graph.nodes[item].name
    group = found[~item]
    return f"{group.title} ({group.last - group.first:,})"


def _width(text: str) -> int:
    """In steps, so that layers whose nodes have numbers of other lengths are placed once."""
    return min(WIDEST, max(NARROWEST, -(-(len(text) * CHARACTER + MARGIN) // 20) * 20))
