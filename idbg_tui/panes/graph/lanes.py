"""Draw the dataflow of a graph as lanes beside its rows, as a commit graph has them.

A value has a lane from the row that computes it to its last reader's. What the next row reads is drawn in the column
nearest to the names instead. Inputs, weights and what the graph returns have no lanes: they would fill the whole width.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from idbg.format.glyphs import JOINTS, MARKS
from idbg.schema.graphs import Graph, Node
from idbg_tui.widgets.lines import StyledRow

MOST = 6
"""Lanes beside one another; a value for which none is free has none."""
FAR = 300
"""Nodes from a value to its last reader: one that is read later has no lane, else nothing would be left for others."""
_MEASURED = 4000  # nodes, by which the width is chosen
_SHORT, _LONG = 4, 32  # nodes: the shorter a lane, the nearer to the names, so that it crosses few
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_OUTSIDE = ("placeholder", "get_attr", "output")
Span = tuple[int, int]
"""Places of nodes, the first and the one after the last; an unfolded heading has none between."""


class Lanes:
    """The lanes of some nodes of a graph, `order` being their ascending indices. A node's place is its position there.

    Lanes are assigned from the first place on, and only as far as rows were drawn. At most `width` are drawn; of a
    whole graph as many as its first nodes need, so that the width stays while the rows scroll.
    """

    def __init__(self, graph: Graph, order: Sequence[int], index: Mapping[str, int], width: int = MOST) -> None:
        self._graph, self._order, self._index, self.width = graph, order, index, width
        self._starts: list[list[int]] = [[] for _ in range(width)]
        self._until = [-1] * width
        self._last: dict[int, int] = {}
        self._assigned = 0
        if isinstance(order, range):
            self.assign(_MEASURED)
            self.width = max((lane + 1 for lane, starts in enumerate(self._starts) if starts), default=0)

    def assign(self, end: int) -> bool:
        """Assign the lanes of the values before this place. True when all are."""
        for place in range(self._assigned, min(end, len(self._order))):
            if self._node(place).op in _OUTSIDE:
                continue
            last = max(self._readers(place), default=0)
            if place + 1 < last <= place + FAR and (lane := self._free(place, last - place)) is not None:
                self._starts[lane].append(place)
                self._last[place] = self._until[lane] = last
        self._assigned = max(self._assigned, min(end, len(self._order)))
        return self._assigned == len(self._order)

    def assign_more(self, count: int) -> bool:
        """Assign the lanes of so many values more. True when all are."""
        return self.assign(self._assigned + count)

    def _free(self, place: int, length: int) -> int | None:
        near = (length > _SHORT) + (length > _LONG)
        lanes = (*range(near, self.width), *reversed(range(min(near, self.width))))
        return next((lane for lane in lanes if self._until[lane] < place), None)

    def _node(self, place: int) -> Node:
        return self._graph.nodes[self._order[place]]

    def place(self, index: int) -> int | None:
        """The place of a node by its index in the graph; None where it is not among these."""
        place = bisect_left(self._order, index)
        return place if place < len(self._order) and self._order[place] == index else None

    def node_at(self, place: int) -> int:
        """The index of the node at a place; past the end, of the last."""
        return self._order[min(place, len(self._order) - 1)] if self._order else -1

    def _readers(self, place: int) -> list[int]:
        nodes, index = self._graph.nodes, self._index
        found = (index[name] for name in self._graph.users.get(self._node(place).name, ()) if name in index)
        places = (self.place(at) for at in found if nodes[at].op != "output")
        return [at for at in places if at is not None]

    def _makers(self, place: int) -> list[int]:
        found = (self._index[name] for name in self._node(place).inputs if name in self._index)
        places = (self.place(at) for at in found if self._graph.nodes[at].op not in _OUTSIDE)
        return [at for at in places if at is not None]

    def reach(self, focus: Span) -> Span:
        """The places between which the lanes of these nodes' inputs and values are."""
        inside = range(*focus) if focus[1] - focus[0] <= FAR else ()
        ends = [end for place in inside for end in (*self._makers(place), *self._readers(place))]
        return min((focus[0], *ends)), 1 + max((focus[1], *ends))

    # ---------------------------------------------------------------- drawing

    def drawn(self, row: Span, focus: Span) -> StyledRow:
        """The cells of one row, whose nodes are at these places; those to and from the nodes in `focus` stand out."""
        first, last = row
        self.assign(last)
        vertical, joined, lit = [0] * self.width, [False] * self.width, [False] * self.width
        for lane in range(self.width):
            enters, leaves = self._occupant(lane, first, first), self._occupant(lane, last, last)
            vertical[lane] = _UP * (enters is not None) + _DOWN * (leaves is not None)
            joined[lane] = (leaves is not None and leaves >= first) or (
                enters is not None and any(first <= at < last and at != enters + 1 for at in self._readers(enters))
            )
            lit[lane] = any(value is not None and self._is_lit(value, first, focus) for value in (enters, leaves))
        up, down = self._is_direct(first), self._is_direct(last)
        trunk = _UP * up + _DOWN * down
        in_focus = first < focus[1] and focus[0] < last
        trunk_lit = in_focus or (up and first == focus[1] > focus[0]) or (down and last == focus[0] < focus[1])
        cells: list[tuple[str, bool]] = []
        begun = lit_here = False
        for lane in reversed(range(self.width)):
            bits = vertical[lane]
            if joined[lane]:
                bits |= _RIGHT | (_LEFT if begun else 0)
                begun, lit_here = True, lit_here or lit[lane]
                cells.append((JOINTS[bits], lit_here))
            else:
                cells.append((JOINTS[bits or (_LEFT | _RIGHT if begun else 0)], lit[lane] if bits else lit_here))
        free = next((lane for lane in range(self.width) if not vertical[lane]), None)
        if free is not None and last == first + 1 and self._is_cut(first):
            cells[-1 - free] = (MARKS["far"], cells[-1 - free][1])
            begun = True
        cells.append((JOINTS[trunk | (_LEFT if begun else 0)], trunk_lit or lit_here))
        return [(glyph, "lit lane" if is_lit else "lane") for glyph, is_lit in cells]

    def _occupant(self, lane: int, before: int, end: int) -> int | None:
        """The value that is in a lane, was computed before one place, and is read at another or later."""
        starts = self._starts[lane]
        at = bisect_left(starts, before) - 1
        return starts[at] if at >= 0 and self._last[starts[at]] >= end else None

    def _is_lit(self, value: int, row: int, focus: Span) -> bool:
        if focus[0] <= value < focus[1]:
            return True
        return row < focus[1] and any(focus[0] <= place < focus[1] for place in self._readers(value))

    def _is_direct(self, place: int) -> bool:
        """Whether the node there reads the one before."""
        if not 0 < place < len(self._order):
            return False
        before = self._node(place - 1)
        return before.op not in _OUTSIDE and before.name in self._node(place).inputs

    def _is_cut(self, place: int) -> bool:
        """Whether a value that the node there reads, or computes, has no lane and would need one."""
        if self._node(place).op in _OUTSIDE:
            return False
        if any(maker + 1 < place and maker not in self._last for maker in self._makers(place)):
            return True
        return place not in self._last and max(self._readers(place), default=0) > place + 1
