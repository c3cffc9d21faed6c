"""The rows of the graph browser."""

import textwrap
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.neighbours import distances
from idbg.analysis.outline import ModuleHeading, Outline, outline
from idbg.checking.rule_costs import RuleCosts
from idbg.checking.tally import Tally
from idbg.constraints import Findings
from idbg.format.glyphs import MARKS
from idbg.schema.graphs import Graph
from idbg.schema.violations import SEVERITIES
from idbg.views import kernel_times
from idbg.views.graphs import op_of
from idbg.views.tree import UNSORTED, Order
from idbg_tui.panes.graph.appearance import Appearance
from idbg_tui.panes.graph.colours import NO_MARK, Colours
from idbg_tui.panes.graph.columns import (
    GraphColumns,
    RowFacts,
    error_mark,
    heading_row,
    is_kernel,
    kernel_mark,
    measure,
    node_row,
    short_error,
    short_size,
    side_mark,
    widths,
)
from idbg_tui.panes.graph.figures import GraphFigures, versions_of
from idbg_tui.panes.graph.lanes import Lanes, Span
from idbg_tui.panes.graph.order import USUAL, NodeValues, in_order
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines, StyledRow
from idbg_tui.widgets.section_rows import Row

RULE_WORDS = {
    "unsupported_ops": "op",
    "alignment": "align",
    "peak_memory": "peak",
    "weights_memory": "weights",
    "matmul_tile": "tile",
    "static_shapes": "static",
    "constant_operand": "operand",
    "leading_dims": "leading",
    "same_dtype": "dtypes",
    "max_dim": "dim",
}

NEAR = "near:"
"""Before the name of a node: the word of a query that its neighbours have."""
_TIME, _ERROR = 6, 5  # cells of "1.23ms" and "3e-02"


class GraphLines(Lines):
    """The rows of one graph: a row is a node's index or `~heading`. What a row says is looked up when it is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.graph: Graph | None = None
        self.outline = Outline([], [], set())
        self.findings: Findings | None = None
        self.empty = ""
        self.waiting: Sequence[Row] = ()  # rows in the place of a graph that is to come
        self._state = State()
        self._rows: list[int] = []
        self._row_of: dict[int, int] = {}
        self._matches: Sequence[int] | None = None
        self._tally: Tally | None = None
        self._index: dict[str, int] = {}
        self._inputs: frozenset[str] = frozenset()
        self._users: frozenset[str] = frozenset()
        self._marked: frozenset[str] = frozenset()
        self._selected = -1
        self._columns = GraphColumns()
        self._lanes: Lanes | None = None  # of all nodes
        self._drawn_lanes: Lanes | None = None  # of those that a filter leaves
        self._focus: Span = (0, 0)  # the selected nodes, whose lanes stand out
        self._flow_of: dict[int, StyledRow] = {}  # the lanes beside a row, as they were drawn last
        self.appearance = Appearance()
        self.order: Order = UNSORTED
        self._colours: tuple[object, Colours] | None = None  # as of some versions
        self._rule_costs: RuleCosts | None = None
        self._live: Sequence[int] = ()  # bytes in memory while each node runs
        self._sorted_as_of: tuple[object, ...] = ()
        self._fitted: dict[int, GraphColumns] = {}
        self._figures: GraphFigures | None = None  # as of some versions

    # ---------------------------------------------------------------- what is shown

    def show_graph(self, graph: Graph | None, folded: set[str] | None) -> None:
        """Show another graph, with these headings folded (None: as an outline folds them at first)."""
        self.graph, self.findings, self._tally, self._matches, self._live = graph, None, None, None, ()
        self.outline = outline(graph, folded) if graph else Outline([], [], set())
        self._index = {node.name: index for index, node in enumerate(graph.nodes)} if graph else {}
        self._selected = -1
        if graph:
            headings, owner = self.outline.headings, self.outline.owner
            depths = [0 if at < 0 else headings[at].depth + 1 for at in owner]
            self._columns = measure(graph.nodes, depths)
        self._lanes = Lanes(graph, range(len(graph.nodes)), self._index) if graph else None
        self._focus = (0, 0)
        lanes = self._lanes.width if self._lanes is not None else 0
        self._widen(flow=lanes + 1 if lanes else 0)
        self._fitted.clear()
        self._figures = None
        self.lay_out()

    def show_findings(self, findings: Findings, rule_costs: RuleCosts | None) -> None:
        """Show what the rules say now, and in which partition each node runs, once that was counted."""
        if findings is self.findings and rule_costs is self._rule_costs:
            return
        if findings is not self.findings:
            self.findings, self._tally = findings, Tally(findings)
        self._rule_costs = rule_costs
        # a column stays once it is there: an edit of the rules moves nothing
        verdict, side = _verdict_width(findings), _side_width(findings, rule_costs)
        self._widen(verdict=max(self._columns.verdict, verdict), side=max(self._columns.side, side))
        self.repaint_changes()

    def show_memory(self, profile: MemoryProfile | None) -> None:
        """Show what is in memory while each node runs, once that was counted."""
        live = profile.live_bytes if profile is not None else ()
        if live is not self._live:
            self._live = live
            ends = ("memory", short_size(min(live)), short_size(max(live))) if live else ()
            self._widen(memory=max((*map(len, ends), self._columns.memory)))
            self.repaint_changes()

    def show_appearance(self, appearance: Appearance) -> None:
        """Show other columns, or nodes in other colours."""
        self.appearance = appearance
        self._fitted.clear()
        self.repaint_changes()

    @property
    def colours(self) -> Colours | None:
        """By what nodes are coloured now; None where they are not."""
        versions, by = self._state.versions, self.appearance.colour
        if self.graph is None or not by:
            return None
        key = (id(self.graph), by, versions.graphs, versions.run, versions.rules, versions.costs)
        if self._colours is None or self._colours[0] != key:
            self._colours = key, Colours(self._state, self.graph, by)
        return self._colours[1]

    def figures(self, graph: Graph) -> GraphFigures:
        """What the kernels of the graph's nodes come to, as far as it is known now."""
        if self._figures is None or self._figures.versions != versions_of(self._state):
            self._figures = GraphFigures(self._state, graph, self._index)
        return self._figures

    def prepare_lanes(self, count: int) -> bool:
        """Assign the lanes of so many nodes more, so that a jump to the end finds them there. True when all are."""
        return self._lanes is None or self._lanes.assign_more(count)

    def _widen(self, **widths: int) -> None:
        columns = replace(self._columns, **widths)  # type: ignore[arg-type]  # they are all cells
        if columns != self._columns:
            self._columns = columns
            self._fitted.clear()

    def show_relations(self, state: State) -> None:
        """Mark the selected node's inputs and users, and its kernel's nodes; repaints the rows whose mark changes."""
        self._state = state
        graph, node = state.graph, state.node
        compared = queries.compared_run(state)
        observed = compared is not None and compared is state.shown and compared.diff and compared.diff.kernels
        timed = state.history.kernels is not None and state.history.kernels.times is not None
        now = self._columns
        if queries.has_kernels(state):
            self._widen(kernel=GraphColumns.kernel, time=max(now.time, _TIME * timed))
        if observed or (graph is not None and self.figures(graph).wrong):
            self._widen(error=max(now.error, _ERROR))
        if self._columns != now:
            self.repaint_changes()
        before, lit = self._inputs | self._users | self._marked, self._lit_rows()
        self._inputs = frozenset(node.inputs) if node else frozenset()
        self._users = frozenset(graph.users.get(node.name, ())) if graph and node else frozenset()
        self._marked = queries.marked_nodes(state) if queries.has_kernels(state) else frozenset()
        touched = before | self._inputs | self._users | self._marked
        rows = (self._row_of.get(self._index.get(name, -1)) for name in touched)
        self._selected, selected = self._index.get(node.name, -1) if node else -1, self._selected
        places = {self._row_of.get(self._shown_as(index), -1) for index in (selected, self._selected)}
        self._focus = self._focused(state)
        # the lanes of most rows stay as they are, and to draw a row whole takes ten times as long
        columns = self.columns(self.line_width)
        near = {row for row in (*lit, *self._lit_rows()) if self._flow_of.get(row) != self._flow_beside(row, columns)}
        self.repaint_rows({*places, *near, *(row for row in rows if row is not None)})

    def _focused(self, state: State) -> Span:
        """The places of the selected node, or of those of the selected module."""
        if self._selected < 0 or self._drawn_lanes is None:
            return 0, 0
        if state.heading is not None:
            return state.heading.span if self._matches is None else (0, 0)
        place = self._drawn_lanes.place(self._selected)
        return (place, place + 1) if place is not None else (0, 0)

    def _lit_rows(self) -> range:
        """The rows that are seen beside which a lane of the selected nodes may be."""
        lanes, graph = self._drawn_lanes, self.graph
        if lanes is None or graph is None or self._focus == (0, 0) or not self.columns(self.line_width).flow:
            return range(0)
        first, last = (lanes.node_at(place) for place in lanes.reach(self._focus))
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        ends = self._row_of.get(self._shown_as(first), 0), self._row_of.get(self._shown_as(last), self.row_count)
        return range(max(top, ends[0]), min(bottom, ends[1] + 1))

    def _shown_as(self, index: int) -> int:
        """The row (see `_rows`) that stands for a node: its own, or the outermost folded heading that hides it."""
        if index < 0 or self.is_flat:
            return index
        hiding = [at for at in self.outline.above(index) if self.outline.headings[at].key in self.outline.folded]
        return ~hiding[-1] if hiding else index

    def filter(self, matches: Sequence[int] | None) -> None:
        """Show these nodes only, those of one module in a row under its path; None shows all."""
        self._matches = matches
        self.lay_out()

    def lay_out(self) -> None:
        """Make the rows again, after a fold, a filter or another order."""
        self._rows = self._ordered_rows()
        self._row_of = {row: place for place, row in enumerate(self._rows)}
        self._drawn_lanes = self._lanes if self.order == UNSORTED else None
        self._flow_of.clear()
        if self._matches is not None and self.graph is not None and self._drawn_lanes is not None:
            self._drawn_lanes = Lanes(self.graph, self._matches, self._index, self._drawn_lanes.width)
        self._focus = self._focused(self._state)
        self.rows_changed()

    def _ordered_rows(self) -> list[int]:
        if self.order != UNSORTED and self.graph is not None:
            every = range(len(self.graph.nodes)) if self._matches is None else self._matches
            self._sorted_as_of = self._values_are_of()
            return in_order(every, self._values(self.graph).of(self.order[0]), self.order[1])
        return self.outline.rows() if self._matches is None else self._under_paths(self._matches)

    def _values(self, graph: Graph) -> NodeValues:
        return NodeValues(graph, self.figures(graph), self.findings, self._rule_costs, self._live)

    def _values_are_of(self) -> tuple[object, ...]:
        """What the values by which the rows are sorted depend on, beside the graph."""
        versions = self._state.versions
        return versions.graphs, versions.run, versions.rules, versions.costs

    def sort(self, order: Order) -> None:
        """Show the nodes in this order, without their modules; UNSORTED: in that of the program, under them."""
        self.order = order
        self._fitted.clear()
        self.lay_out()

    def sort_again(self) -> None:
        """Sort the rows by what is known now; the cursor stays on its node."""
        if self.order != UNSORTED and self._sorted_as_of != self._values_are_of():
            rows, here = self._rows, self.row_at(self.cursor)
            self.lay_out()
            if here is not None and rows != self._rows:
                self.place_cursor(self.row_that_shows(here))

    @property
    def is_flat(self) -> bool:
        """Whether modules do not fold: nodes are filtered or sorted."""
        return self._matches is not None or self.order != UNSORTED

    @property
    def sortable(self) -> list[str]:
        """The names of the columns by which the nodes can be sorted now."""
        columns = self._columns.without(self.appearance.hidden)
        shown = {name for _, name, _ in widths(replace(columns, module=columns.modules))}
        return [name for name in USUAL if name in shown]

    def _under_paths(self, matches: Sequence[int]) -> list[int]:
        """The rows of these nodes, each module's after its heading."""
        rows: list[int] = []
        before = -1
        for index, owner in zip(matches, map(self.outline.owner.__getitem__, matches), strict=True):
            if owner != before:
                before = owner
                if owner >= 0:
                    rows.append(~owner)
            rows.append(index)
        return rows

    # ---------------------------------------------------------------- which row is which

    def next_node(self, row: int, step: int) -> int:
        """The next row that is a node's, from `row` on; `row` itself where there is none."""
        found = row
        while 0 <= (found := found + step) < len(self._rows):
            if self._rows[found] >= 0:
                return found
        return row

    def node_at(self, row: int) -> int | None:
        """The index of the node in a row, or None for a heading."""
        return self._rows[row] if 0 <= row < len(self._rows) and self._rows[row] >= 0 else None

    def heading_of(self, row: int) -> int | None:
        """The heading in a row, or the one that the row's node stands under; None if there is none."""
        if not 0 <= row < len(self._rows):
            return None
        heading = ~self._rows[row] if self._rows[row] < 0 else self.outline.owner[self._rows[row]]
        return heading if heading >= 0 else None

    def term(self, word: str) -> Callable[[int], bool] | None:
        """What a word of a query asks of a node beyond its text, as a test of the node's index; None if it is text.

        `k:5`: computed by kernel 5, or by one with that in its name. `op:conv`: its op has that in its name.
        `near:add_1`: at most two edges from that node. `!pad`: breaks a rule of that severity, name or kind; `!` any.
        """
        graph, findings = self.graph, self.findings
        if graph is None:
            return None
        if word.startswith("op:"):
            return lambda index: word[3:] in op_of(graph.nodes[index]).lower()
        if word.startswith("k:"):
            names = queries.nodes_computed_by(self._state, lambda kernel: is_kernel(kernel, word[2:]))
            return lambda index: graph.nodes[index].name in names
        if word.startswith(NEAR):
            center = next((node.name for node in graph.nodes if node.name.lower() == word[len(NEAR) :]), None)
            near = distances(graph, center, 2) if center is not None else {}
            return lambda index: graph.nodes[index].name in near
        if word.startswith("!") and findings is not None:
            return lambda index: any(
                word[1:] in f"{rule.severity} {rule.name} {rule.kind}".lower() for rule, _ in findings.broken_at(index)
            )
        return None

    def row_at(self, place: int) -> int | None:
        """What stands at this place: a node's index or `~heading`; None past the end."""
        return self._rows[place] if 0 <= place < len(self._rows) else None

    def row_that_shows(self, row: int) -> int:
        """The place of a row, or of the outermost folded heading that hides it."""
        if row in self._row_of:
            return self._row_of[row]
        node = row if row >= 0 else self.outline.headings[~row].first
        return self._row_of.get(self._shown_as(node), self.cursor)

    def row_of_heading(self, heading: int) -> int:
        """The place of a heading's row; that of the cursor where a fold hides it."""
        return self._row_of.get(~heading, self.cursor)

    def reveal(self, name: str) -> bool:
        """Put the cursor on a node, unfolding what hides it. False if a filter leaves it out."""
        index = self._index.get(name, -1)
        if index < 0 or (self.is_flat and index not in self._row_of):
            return False
        if self.outline.reveal(index) and not self.is_flat:
            self.lay_out()
        self.place_cursor(self._row_of[index])
        return True

    # ---------------------------------------------------------------- rows

    @property
    def row_count(self) -> int:
        return len(self._rows) or len(self.waiting) or len(self._empty_lines)

    @property
    def _empty_lines(self) -> list[str]:
        """What stands where there is no row, wrapped."""
        width = max(10, self.line_width - 2)
        return [line for text in self.empty.splitlines() for line in textwrap.wrap(text, width) or [""]] or [""]

    def columns(self, width: int) -> GraphColumns:
        """The columns of every row, for a line of this width."""
        if width not in self._fitted:
            columns = replace(self._columns.without(self.appearance.hidden), tint=int(bool(self.appearance.colour)))
            self._fitted[width] = columns.sorted_by(self.order).within(width)
        return self._fitted[width]

    def row(self, index: int, width: int) -> StyledRow:
        columns = self.columns(width)
        if not self._rows:
            return self.waiting[index].draw(width) if self.waiting else [(f" {self._empty_lines[index]}", "dim")]
        row = self._rows[index]
        if row < 0:
            return self._heading_row(index, self.outline.headings[~row], columns)
        assert self.graph is not None
        depth = 0 if self.order != UNSORTED else int(self.outline.owner[row] >= 0)
        depth = self.outline.depth(row) if not self.is_flat else depth
        flow = self._flow_of[index] = self._flow_beside(index, columns)
        return node_row(self.graph.nodes[row], depth, replace(self._facts(self.graph, row), flow=flow), columns)

    def _heading_row(self, place: int, heading: ModuleHeading, columns: GraphColumns) -> StyledRow:
        broken = self._tally.within(heading.first, heading.last) if self._tally else {}
        flow = self._flow_of[place] = self._flow_beside(place, columns)
        if self._matches is not None:
            matched = bisect_left(self._matches, heading.last) - bisect_left(self._matches, heading.first)
            return heading_row(heading, broken, columns, folded=False, matched=matched, flow=flow)
        folded = heading.key in self.outline.folded
        hides = folded and self._selected >= 0 and self._shown_as(self._selected) == self._rows[place]
        if not folded or self.graph is None:
            return heading_row(heading, broken, columns, folded=folded, flow=flow)
        wrong = any(at in range(*heading.span) for at in self.figures(self.graph).wrong)
        colours, worst, totals = self.colours, next(iter(broken), None), self.figures(self.graph).of_module(heading)
        tint = colours.mark_of_module(*heading.span, worst, totals) if colours is not None else NO_MARK
        live = self._live[slice(*heading.span)]
        memory = short_size(max(live)) if live else ""
        return heading_row(
            heading,
            broken,
            columns,
            folded=True,
            hides=hides,
            wrong=wrong,
            flow=flow,
            tint=tint,
            totals=totals,
            memory=memory,
        )

    def _flow_beside(self, place: int, columns: GraphColumns) -> StyledRow:
        """The lanes beside a row."""
        if self._drawn_lanes is None or not columns.flow:
            return ()
        row = self._rows[place]
        if row < 0:
            heading = self.outline.headings[~row]
            first = heading.first if self._matches is None else self._drawn_lanes.place(self._rows[place + 1]) or 0
            is_folded = self._matches is None and heading.key in self.outline.folded
            span = first, heading.last if is_folded else first
        else:
            at = self._drawn_lanes.place(row) or 0
            span = at, at + 1
        return self._drawn_lanes.drawn(span, self._focus)

    def _facts(self, graph: Graph, index: int) -> RowFacts:
        name = graph.nodes[index].name
        broken = self.findings.broken_at(index) if self.findings else ()
        words = ""
        if broken:
            severest = min((rule for rule, _ in broken), key=lambda rule: SEVERITIES.index(rule.severity))
            words = _word(severest.kind) + (f"+{len(broken) - 1}" if len(broken) > 1 else "")
        figures = self.figures(graph)
        kernels = figures.launches(index)
        # a kernel's figures stand once, at the first of its nodes: they are not those of each
        first, errors = figures.firsts(index, kernels), figures.errors(kernels)
        wrong = figures.wrong.get(index)
        rule_costs = self._rule_costs
        severity = self.findings.worst_at(index) if self.findings and broken else None
        return RowFacts(
            side=side_mark(rule_costs.side_of.get(name), crosses=name in rule_costs.crossing) if rule_costs else "",
            relation="input" if name in self._inputs else "user" if name in self._users else "",
            marked=name in self._marked,
            severity=severity,
            words=words,
            kernel=kernel_mark([kernel for kernel, _ in kernels]),
            error=short_error(wrong) if wrong is not None else error_mark(figures.errors(first)),
            wrong=wrong is not None,
            bad=any(error.bad for error in errors),
            time=kernel_times.short_time(figures.times(first)),
            memory=short_size(self._live[index]) if self._live else "",
            selected=index == self._selected,
            tint=colours.mark(index, kernels, severity, wrong=wrong is not None)
            if (colours := self.colours) is not None
            else NO_MARK,
        )


def _word(kind: str) -> str:
    return RULE_WORDS.get(kind, kind)


def _verdict_width(findings: Findings) -> int:
    """Cells for the longest verdict: a sign, a rule's word, and "+1" where nodes break several; 0 with no violation."""
    words = max((len(_word(group.rule.kind)) for group in findings.groups), default=0)
    return min(16, words + 2 + (2 if len(findings.groups) > 1 else 0)) if words else 0


def _side_width(findings: Findings, rule_costs: RuleCosts | None) -> int:
    """Cells for the longest "p12" or "host" with an arrow; 0 where nothing falls back to the host."""
    if not findings.by_severity.get("fallback"):
        return 0
    longest = len(str(rule_costs.partitions.count)) if rule_costs and rule_costs.partitions else 0
    return 1 + max(3, longest) + len(MARKS["arrow"])
