"""Which graph came out at each stage, and which of its nodes matter? The graph browser."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget

from idbg.format.failures import headline
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Failure
from idbg_tui.messages import CopyAsked, Flash, NodeChosen
from idbg_tui.panes.base import Pane
from idbg_tui.panes.graph.columns import heads
from idbg_tui.panes.graph.node_search import NodeSearch
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.panes.source.sheets import why_no_graph
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.search import SearchLine


class GraphHeads(Widget):
    """The names of the columns, above the rows: they stay while those scroll."""

    DEFAULT_CSS = """
    GraphHeads { height: 1; color: $foreground 55%; display: none; }
    GraphHeads.-shown { display: block; }
    """

    def __init__(self, lines: GraphLines) -> None:
        super().__init__()
        self._lines = lines
        self._shown = ""

    def show(self) -> None:
        """Name the columns of the graph as they are now."""
        width = self._lines.line_width
        shown = "".join(text for text, _ in heads(self._lines.columns(width))) if self._lines.graph else ""
        if shown != self._shown:
            self._shown = shown
            self.set_class(bool(shown), "-shown")
            self.refresh()

    def render(self) -> Content:
        return Content(self._shown)


@dataclass(frozen=True)
class Viewpoint:
    """Where the graph is looked at: what a filter that finds nothing, or is given up, gives back."""

    node: NodeId | None = None
    cursor: int = -1  # a row; none: the node's own
    top: int = 0  # the first row that is seen
    folded: frozenset[str] = frozenset()


class GraphPane(Pane):
    """Nodes under their modules, a filter, and the selected node's inputs and users marked."""

    ID = "graph"
    LABEL = "Graph"
    HINTS = (("[ ]", "stage"), ("/", "filter"), ("n", "next"), ("i u", "input user"), ("space", "fold"))
    DEFAULT_CSS = """
    GraphPane { layout: vertical; }
    GraphPane > GraphLines { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", show=False),
        Binding("escape", "clear", show=False),
        Binding("space", "fold", show=False),
        Binding("left,h", "close", show=False),
        Binding("right,l", "open", show=False),
        Binding("f", "fold_all", show=False),
        Binding("n", "next(1)", show=False),
        Binding("N", "next(-1)", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = GraphLines()
        self._heads = GraphHeads(self.lines)
        self._state = State()
        self._search: NodeSearch | None = None
        self._query = ""
        self._matched = 0
        self._left = Viewpoint()  # before the filter
        self._asked: NodeId | None = None  # what the filter chose last; the state may not have it yet
        self._folded: dict[GraphId, set[str]] = {}
        self._seen: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield self._heads
        yield self.lines

    def on_mount(self) -> None:
        self._preparing = self.set_interval(0.03, self._prepare, pause=True)

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
            self._say_why_empty(state)
        if graph is not self.lines.graph:
            self._show_graph(state)
        elif before[1:2] != (versions.graphs,):
            self.lines.repaint_changes()
        if graph is not None:
            findings = state.checks.findings(graph)
            self.lines.show_findings(findings, state.costs.priced(findings))
        self.lines.show_relations(state)
        if state.selected is not None and before[3:4] != (versions.selection,):
            self._go_to(state.selected.name)
        self._set_heading()
        self._heads.show()

    def on_resize(self) -> None:
        self.call_after_refresh(self._heads.show)

    def _show_graph(self, state: State) -> None:
        graph = state.graph
        self.lines.show_graph(graph, self._folded.get(graph.id) if graph else None)
        if graph is None:
            return
        self._folded[graph.id] = self.lines.outline.folded
        self._search = NodeSearch(graph)
        self._preparing.resume()
        if self._query:
            self._apply(self._query)
        if state.selected is not None:
            self._go_to(state.selected.name)

    def _say_why_empty(self, state: State) -> None:
        run = state.run
        if run is not None and run.failure is not None:
            why = _why_failed(run.failure)
        elif state.running:
            why = "compiling: each graph is shown as soon as it is captured"
        elif run is not None and run.ended is not None:
            why = "the program ran, and torch.compile compiled nothing in it"
        else:
            why = "no graph yet: r compiles the program"
        if why != self.lines.empty:
            self.lines.empty = why
            self.lines.rows_changed()

    def _go_to(self, name: str) -> None:
        typing = any(line.has_class("-open") for line in self.query(SearchLine))  # the choice may be of letters before
        if not self.lines.reveal(name) and self._query and not typing:
            # something else chose a node that the filter hides: what is selected must be seen
            self._apply("")
            self.lines.reveal(name)

    def _prepare(self) -> None:
        if self._search is None or self._search.prepare(0.008):
            self._preparing.pause()

    def _set_heading(self) -> None:
        room = self.size.width - 4  # the border keeps two cells on either side
        wide = (self._heading(f" {MARKS['rule']} "), self._heading("  "), self._heading("  ", terse=True))
        self.set_title(next((title for title in wide if title.cell_length <= room), wide[-1]))

    def _heading(self, between: str, *, terse: bool = False) -> Content:
        """Stages, the shown one in brackets, then how many nodes, which frame, and which run if it is not the last.

        A `terse` one names the shown stage only, and its place among the others.
        """
        state, graph = self._state, self._state.graph
        title = self.name_with_number
        if graph is None:
            return Content(title)
        gap = (between, "dim")
        pieces: list[tuple[str, str]] = [(title, ""), gap]
        stages = queries.stages_of_frame(state)
        for stage in [graph.id] if terse else stages:
            name = _stage_name(stage, alone=sum(one.stage == "post_grad" for one in stages) < 2)
            pieces.append((f"[{name}]", "bold $primary") if stage == graph.id else (f" {name} ", "not bold dim"))
        if terse and len(stages) > 1:
            pieces.append((f" {stages.index(graph.id) + 1} of {len(stages)}", "not bold dim"))
        count = f"{len(graph.nodes):,}"
        counted = f"{self._matched:,} of {count}  /{self._query}" if self._query else f"{count} nodes"
        run = state.run
        if run is not None and "backward" in (graph.id.stage, graph.id.part) and graph.id.frame in run.backwards_idle:
            counted += ", never run"
        pieces += [gap, (counted, "not bold")]
        frames = queries.frames(state)
        if len(frames) > 1:
            name = "frame " if terse else f"frame {graph.id.frame}, "
            pieces += [gap, (f"{name}{frames.index(graph.id.frame) + 1} of {len(frames)}", "not bold")]
        if state.shown is not None and state.run is not state.shown:
            pieces += [gap, (f"run {state.shown.number}", "$warning")]
        return Content.assemble(*pieces)

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
        graph = self.lines.graph
        if index is not None and graph is not None:
            self.post_message(NodeChosen(graph.node_id(graph.nodes[index].name), jump=jump))

    async def action_next(self, step: int) -> None:
        """The next match of the filter; with no filter, the next node that breaks a rule."""
        if self._query:
            self.lines.go(self.lines.cursor + step)
        else:
            await self.run_action(f"app.broken({step})")

    # ---------------------------------------------------------------- folding

    def action_fold(self) -> None:
        """Fold or unfold the module under the cursor."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is not None and not self._query:
            key = self.lines.outline.headings[heading].key
            self._set_folded(heading, folded=key not in self.lines.outline.folded)

    def action_close(self) -> None:
        """Fold the module that the cursor is in; on a folded one, go to the one around it."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is None or self._query:
            return
        own = self.lines.outline.headings[heading]
        if own.key in self.lines.outline.folded and own.parent >= 0:
            self.lines.go(self.lines.row_of_heading(own.parent))
        else:
            self._set_folded(heading, folded=True)

    def action_open(self) -> None:
        """Unfold the module under the cursor."""
        heading = self.lines.heading_of(self.lines.cursor)
        if heading is not None and self.lines.node_at(self.lines.cursor) is None:
            self._set_folded(heading, folded=False)

    def action_fold_all(self) -> None:
        """Fold every module, or, if all are folded, unfold every one."""
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

    def _set_folded(self, heading: int, *, folded: bool) -> None:
        key = self.lines.outline.headings[heading].key
        change = self.lines.outline.folded.add if folded else self.lines.outline.folded.discard
        change(key)
        self.lines.lay_out()
        self.lines.place_cursor(self.lines.row_of_heading(heading))

    # ---------------------------------------------------------------- filter

    def action_filter(self) -> None:
        if self.lines.graph is None:
            self.post_message(Flash(self._no_row()))
            return
        selected = self._state.selected
        if not self._query:
            folded = frozenset(self.lines.outline.folded)
            self._left = Viewpoint(selected, self.lines.cursor, self.lines.scroll_offset.y, folded)
        elif selected not in (self._left.node, self._asked):
            self._left = Viewpoint(selected)  # the user went there among the matches
        self._asked = selected
        SearchLine.open_in(self)

    def action_clear(self) -> None:
        """All rows again, at the node that was found; where nothing was, at the place that the filter left."""
        if not self._query:
            return
        if not self._matched:
            self._return()
            return
        self._apply("")
        if self._state.selected is not None:
            self.lines.reveal(self._state.selected.name)

    def _return(self) -> None:
        """Be where the filter was begun."""
        left, graph = self._left, self.lines.graph
        if graph is None or left.node is None or left.node.graph != graph.id:
            self._apply("")
            return
        if left.folded:
            self.lines.outline.folded.clear()
            self.lines.outline.folded.update(left.folded)
        self._apply("")
        if left.cursor < 0:
            self.lines.reveal(left.node.name)
        else:
            self.lines.place_cursor(left.cursor)
            self.lines.scroll_to(y=left.top, animate=False, immediate=True)
        self._choose_found(left.node)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        event.stop()
        if event.done and not event.text:
            self._return()
        elif event.done or event.text != self._query:
            self._apply(event.text)
            self._after_filter()
        if event.done:
            self.lines.focus()

    def _apply(self, query: str) -> None:
        if self._search is None:
            return
        self._query = query
        matches = self._search.find(query, self.lines.term) if query.strip() else None
        self._matched = len(matches) if matches is not None else 0
        self._query = query if matches is not None else ""
        self.lines.empty = f"no node matches {query}: esc clears the filter"
        self.lines.filter(matches)
        self._set_heading()

    def _after_filter(self) -> None:
        """Select the node that the filter was begun at if it matches, or if nothing does; else the first that does.

        Never what half of the text found: the state hears of that later than the next letter comes.
        """
        graph = self.lines.graph
        if graph is None:
            return
        begun = self._left.node if self._left.node and self._left.node.graph == graph.id else self._state.selected
        if begun is not None and (self.lines.reveal(begun.name) or not self._matched):
            self._choose_found(begun)
            return
        self.lines.place_cursor(0)
        index = self.lines.node_at(0)
        if index is not None:
            self._choose_found(graph.node_id(graph.nodes[index].name))

    def _choose_found(self, node: NodeId) -> None:
        """Select it, unless it is, and no other choice of the filter's is on its way."""
        if node != self._asked or node != self._state.selected:
            self._asked = node
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
        self.post_message(CopyAsked(f"{node.name} = {node.target}({node.args}){tensor}", f"node {node.name}"))

    def _no_row(self) -> str:
        return self.lines.empty if self.lines.graph is not None else why_no_graph(self._state)


def _stage_name(graph: GraphId, *, alone: bool) -> str:
    if graph.stage != "post_grad":
        return graph.stage
    return "post-grad" if alone else {"forward": "post-fwd", "backward": "post-bwd"}.get(graph.part, "post-grad")


def _why_failed(failure: Failure) -> str:
    """What there is to say where a graph would be: what went wrong, where, and what to do."""
    if failure.kind == "cancelled":
        return "cancelled before a graph was captured: r runs again"
    line = headline(failure)
    place = f"{line.place}\n" if line.place else ""
    hint = f"{failure.hint}\n" if failure.hint else ""
    return f"{VERDICT_SIGNS['failed']} {line.what}\n{line.cause}\n{place}\n{hint}7 Log has the rest, r tries again"
