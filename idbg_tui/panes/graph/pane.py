"""The pane Graph: the nodes of each stage's graph, by module."""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from idbg.format.amounts import counted
from idbg.schema.graphs import GraphId, NodeId
from idbg.views.tree import UNSORTED
from idbg_tui import remembered
from idbg_tui.messages import CopyRequest, Flash, NodeChosen
from idbg_tui.panes.base import Pane
from idbg_tui.panes.compile_phases import TICK, phases
from idbg_tui.panes.graph.appearance import Appearance, picker
from idbg_tui.panes.graph.filter import GraphFilter
from idbg_tui.panes.graph.heads import GraphHeads, GraphLegend
from idbg_tui.panes.graph.order import PROGRAM, USUAL
from idbg_tui.panes.graph.rows import NEAR, GraphLines
from idbg_tui.panes.graph.title import titles, why_empty
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets import sorting
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.search import SearchLine
from idbg_tui.widgets.section_rows import Look


class GraphPane(Pane):
    """Nodes under their modules, a filter, and the selected node's inputs and users marked."""

    ID = "graph"
    HINTS = (
        *(("[ ]", "stage"), ("/", "filter"), ("n", "next"), ("i u", "input user"), ("enter", "fold")),
        *(("@", "neighbourhood"), ("|", "lanes"), ("s", "sort"), ("*", "columns")),
    )
    DEFAULT_CSS = """
    GraphPane { layout: vertical; }
    GraphPane > GraphLines { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter the nodes", show=False),
        Binding("escape", "clear", "clear the filter, then the order", show=False),
        Binding("left,h", "close", "fold the module", show=False),
        Binding("right,l", "unfold", "unfold the module", show=False),
        Binding("f", "fold_all", "fold or unfold all", show=False),
        Binding("vertical_line", "lanes", "lanes of values, or none", show=False),
        Binding("asterisk", "appearance", "choose the columns, and by what nodes are coloured", show=False),
        Binding("at", "around", "the neighbourhood of the node: two steps around it", show=False),
        Binding("s", "sort", "sort the table by a column", show=False),
        Binding("n", "next(1)", "the next match", show=False),
        Binding("N", "next(-1)", "the match before", show=False),
        Binding("y", "copy", "copy the node", show=False),
    ]

    def __init__(self, kept: Path | None = None, *, id: str | None = None) -> None:
        """`kept` is the file that has the columns and the colour which the user chose."""
        super().__init__(id=id)
        self.lines = GraphLines()
        self._kept = kept
        if kept is not None:
            self.lines.appearance = remembered.read(kept, Appearance)
        self._heads, self._legend = GraphHeads(self.lines), GraphLegend(self.lines)
        self._state = State()
        self._filter = GraphFilter(self.lines)
        self._folded: dict[GraphId, set[str]] = {}
        self._seen: tuple[object, ...] = ()
        self._of_heading: NodeId | None = None  # the node that stands for the heading under the cursor

    def compose(self) -> ComposeResult:
        yield self._heads
        yield self.lines
        yield self._legend

    def on_mount(self) -> None:
        self._preparing = self.set_interval(0.03, self._prepare, pause=True)
        self._waiting = self.set_interval(TICK, self._show_empty, pause=True)

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """Show the state's graph, what breaks in it, and where the selection stands."""
        versions = state.versions
        seen = (id(state.graph), versions.graphs, versions.rules, versions.selection, versions.run, versions.costs)
        if seen == self._seen or not self.is_mounted:
            return
        before, self._seen = self._seen, seen
        self._state = state
        graph = state.graph
        if graph is None:
            self._show_empty()
        if graph is not self.lines.graph:
            self._show_graph(state)
        elif before[1:2] != (versions.graphs,):
            self.lines.repaint_changes()
        if graph is not None:
            findings = state.checks.findings(graph)
            self.lines.show_findings(findings, state.costs.of_rules(findings))
            self.lines.show_memory(state.costs.profile(graph))
        self.lines.show_relations(state)
        self.lines.sort_again()
        # a node that stands for the heading under the cursor leaves the cursor there
        if state.selected not in (None, self._of_heading) and before[3:4] != (versions.selection,):
            self._go_to(state.selected.name)
        self._set_heading()
        self._heads.show()
        self._legend.show()

    def on_resize(self) -> None:
        self._set_heading()
        self.call_after_refresh(self._heads.show)

    def _show_graph(self, state: State) -> None:
        graph = state.graph
        self.lines.show_graph(graph, self._folded.get(graph.id) if graph else None)
        if graph is None:
            return
        self._folded[graph.id] = self.lines.outline.folded
        self._filter.take_graph(graph)
        self._preparing.resume()
        if state.selected is not None:
            self._go_to(state.selected.name)

    def _show_empty(self) -> None:
        """Why there is no graph; while one is compiled, the phases of the compile."""
        if self._state.graph is not None:
            self._waiting.pause()
            return
        rows = phases(self._state, Look(width=self.lines.line_width))
        empty = why_empty(self._state)
        if rows or self.lines.waiting or empty != self.lines.empty:
            self.lines.empty, self.lines.waiting = empty, rows
            self.lines.rows_changed()
        (self._waiting.resume if rows else self._waiting.pause)()

    def _go_to(self, name: str) -> None:
        typing = any(line.has_class("-open") for line in self.query(SearchLine))  # the choice may be of letters before
        if not self.lines.reveal(name) and self._filter.query and not typing:
            # something else chose a node that the filter hides: what is selected must be seen
            self._filter.apply(NEAR + name if self._filter.query.startswith(NEAR) else "")
            self._set_heading()
            self.lines.reveal(name)

    def _prepare(self) -> None:
        if self.lines.prepare_lanes(2000) and self._filter.prepare(0.008):
            self._preparing.pause()

    def _set_heading(self) -> None:
        room = self.size.width - 4  # the border keeps two cells on either side
        query, matched, graph = self._filter.query, self._filter.matched, self._state.graph
        filtered = f"{matched:,} of {len(graph.nodes):,}  /{query}" if query and graph is not None else ""
        if graph is not None and self.lines.order != UNSORTED:
            filtered = f"{filtered or counted(len(graph.nodes), 'node')} by {self.lines.order[0]}"
        title = Content()
        for title in titles(self._state, self.name_with_number, filtered):
            if title.cell_length <= room:
                break
        self.set_title(title)

    # ---------------------------------------------------------------- moving

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        self._choose(jump=False)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        if self.lines.node_at(event.index) is None:
            self.action_fold()
        else:
            self._choose(jump=True)

    def _choose(self, *, jump: bool) -> None:
        index = self.lines.node_at(self.lines.cursor)
        graph, heading = self.lines.graph, self.lines.heading_of(self.lines.cursor)
        self._of_heading = None
        if graph is None:
            return
        if index is not None:
            self.post_message(NodeChosen(graph.node_id(graph.nodes[index].name), jump=jump))
        elif heading is not None:
            inside = graph.nodes[slice(*self.lines.outline.headings[heading].span)]
            first = next((node for node in inside if node.op.startswith("call")), inside[0])
            self._choose_heading(heading, graph.node_id(first.name))

    def _choose_heading(self, heading: int, node: NodeId) -> None:
        """Select a module: `node`, which is one of it, stands for it in the other panes."""
        self._of_heading = node
        self.post_message(NodeChosen(node, heading=self.lines.outline.headings[heading]))

    def action_next(self, step: int) -> None:
        """The next match of the filter."""
        if self._filter.query:
            self.lines.go(self.lines.next_node(self.lines.cursor, step))
        else:
            self.post_message(Flash("no filter: / sets one; v goes to the next node that breaks a rule"))

    # ---------------------------------------------------------------- folding

    def action_fold(self) -> None:
        """Fold or unfold the module under the cursor."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is not None and not self._is_flat():
            key = self.lines.outline.headings[heading].key
            self._set_folded(heading, folded=key not in self.lines.outline.folded)

    def action_close(self) -> None:
        """Fold the module that the cursor is in; on a folded one, go to the one around it."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is None or self._is_flat():
            return
        own = self.lines.outline.headings[heading]
        if own.key in self.lines.outline.folded and own.parent >= 0:
            self.lines.go(self.lines.row_of_heading(own.parent))
        else:
            self._set_folded(heading, folded=True)

    def action_unfold(self) -> None:
        """Unfold the module under the cursor."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is not None and self.lines.node_at(self.lines.cursor) is None:
            self._set_folded(heading, folded=False)

    def _is_flat(self) -> bool:
        """Whether no module can be folded; where that is for an order, it is shown how to end it."""
        if self.lines.order != UNSORTED:
            self.post_message(Flash(f"{sorting.words(self.lines.order)}: esc puts the nodes under their modules again"))
        return self.lines.is_flat

    def action_fold_all(self) -> None:
        """Fold every module, or, if all are folded, unfold every one."""
        if self.lines.order != UNSORTED and self._is_flat():
            return
        outline = self.lines.outline
        keys = {heading.key for heading in outline.headings}
        everything = keys <= outline.folded
        here = self.lines.row_at(self.lines.cursor)
        outline.folded.clear()
        if not everything:
            outline.folded.update(keys)
        self.lines.lay_out()
        if self._state.selected is not None and everything:
            self.lines.reveal(self._state.selected.name)
        elif here is not None:
            self.lines.place_cursor(self.lines.row_that_shows(here))
            self._stay_in(self.lines.heading_of(self.lines.cursor))

    def _set_folded(self, heading: int, *, folded: bool) -> None:
        outline = self.lines.outline
        if folded:
            outline.folded.add(outline.headings[heading].key)
        else:
            outline.unfold(heading)
        self.lines.lay_out()
        self.lines.place_cursor(self.lines.row_of_heading(heading))
        self._stay_in(heading)

    def _stay_in(self, heading: int | None) -> None:
        """A fold has put the cursor on the heading: what is selected in there stays so."""
        selected, graph = self._state.selected, self.lines.graph
        if heading is None or selected is None or graph is None or self.lines.node_at(self.lines.cursor) is not None:
            return
        first, last = self.lines.outline.headings[heading].span
        if selected.graph == graph.id and any(node.name == selected.name for node in graph.nodes[first:last]):
            self._choose_heading(heading, selected)

    # ---------------------------------------------------------------- appearance

    def action_lanes(self) -> None:
        """Draw the lanes of values beside the rows, or leave them out."""
        self._show_appearance(self.lines.appearance.turned("flow"))

    def action_appearance(self) -> None:
        """Let the user choose the columns, and by what nodes are coloured, until they leave the list."""
        self._choose_appearance("op")

    def _choose_appearance(self, last: str) -> None:
        def take(name: str | None) -> None:
            if name is not None:
                self._show_appearance(self.lines.appearance.chosen(name))
                self._choose_appearance(name)

        self.app.push_screen(picker(self.lines.appearance, last), take)

    def _show_appearance(self, appearance: Appearance) -> None:
        if self._kept is not None:
            remembered.write(self._kept, appearance)
        self.lines.show_appearance(appearance)
        self._heads.show()
        self._legend.show()

    # ---------------------------------------------------------------- order

    def action_sort(self) -> None:
        """Choose the column by which the nodes are sorted."""
        if self.lines.graph is None:
            self.post_message(Flash(self._no_row()))
            return
        usual = {name: USUAL[name] for name in self.lines.sortable}
        self.app.push_screen(sorting.picker_of(usual, self.lines.order, PROGRAM), self._sort)

    def on_graph_heads_clicked(self, event: GraphHeads.Clicked) -> None:
        event.stop()
        self._sort(event.column)

    def _sort(self, column: str | None) -> None:
        """Sort by a column that was chosen, and go to the first row; in the program's order, stay at the node."""
        if column is None or self.lines.graph is None:
            return
        order = sorting.turned_to(column, self.lines.order, USUAL.get(column, ""))
        self.lines.sort(order)
        first = self.lines.node_at(0)
        if order != UNSORTED and first is not None:
            self.lines.place_cursor(0)
            node = self.lines.graph.node_id(self.lines.graph.nodes[first].name)
            self.post_message(NodeChosen(node, jump=True))
        elif self._state.selected is not None:
            self.lines.reveal(self._state.selected.name)
        self._set_heading()
        self._heads.show()
        self.post_message(Flash(sorting.words(order)))

    # ---------------------------------------------------------------- filter

    def action_filter(self) -> None:
        if self.lines.graph is None:
            self.post_message(Flash(self._no_row()))
            return
        self._filter.begin(self._state.selected)
        SearchLine.open_in(self)

    def action_around(self) -> None:
        """Show only what is at most two edges from the selected node."""
        if self._state.node is None or self.lines.graph is None:
            self.post_message(Flash(self._no_row()))
            return
        self._filter.begin(self._state.selected)
        self._filter.apply(NEAR + self._state.node.name)
        self._set_heading()
        self.lines.reveal(self._state.node.name)

    def action_clear(self) -> None:
        """All rows again, at the node that was found; where nothing was, at the place that the filter left. Without a
        filter, the program's order.
        """
        if not self._filter.query:
            if self.lines.order != UNSORTED:
                self._sort(sorting.AS_IT_IS)
            return
        if not self._filter.matched:
            self._return()
            return
        self._filter.apply("")
        self._set_heading()
        if self._state.selected is not None:
            self.lines.reveal(self._state.selected.name)

    def _return(self) -> None:
        """Be where the filter was begun."""
        self._choose_found(self._filter.cancel(self._state.selected))

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        event.stop()
        if event.done and not event.text:
            self._return()
        elif event.done or event.text != self._filter.query:
            self._filter.apply(event.text)
            self._choose_found(self._filter.settle(self._state.selected))
        if event.done:
            self.lines.focus()

    def _choose_found(self, node: NodeId | None) -> None:
        self._set_heading()
        if node is not None:
            self.post_message(NodeChosen(node))

    def action_copy(self) -> None:
        index, graph = self.lines.node_at(self.lines.cursor), self.lines.graph
        if index is None or graph is None:
            heading = "copy works on a node: this is a heading"
            self.post_message(
                Flash(heading if self.lines.heading_of(self.lines.cursor) is not None else self._no_row())
            )
            return
        node = graph.nodes[index]
        tensor = f"  # {node.tensor}" if node.tensor else ""
        self.post_message(CopyRequest(f"{node.name} = {node.target}({node.args}){tensor}", f"node {node.name}"))

    def _no_row(self) -> str:
        return self.lines.empty if self.lines.graph is not None else why_no_graph(self._state)
