"""The compiler's decisions and their reasons: one view at a time."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.schema.decisions.decision import Decision
from idbg.schema.runs import Run
from idbg_tui.messages import (
    EditorRequest,
    Flash,
    HintsChanged,
    KernelChosen,
    LineChosen,
    NodeChosen,
    SourceRequest,
)
from idbg_tui.panes.why import flame, views
from idbg_tui.panes.why.row_keys import RowKeys
from idbg_tui.panes.why.view_line import ViewLine
from idbg_tui.panes.why.views import VIEWS, ViewName
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.search import Searched
from idbg_tui.widgets.section_list import FilteredLines
from idbg_tui.widgets.section_rows import Look, Row, place_of

_HINTS = (
    *(("[ ]", "view"), ("enter", "go there, unfold"), ("/", "filter"), (", .", "graph before, after")),
    *(("e", "edit"), ("f", "fold all"), ("o", "order"), ("H", "hide, show all"), ("x", "repro"), ("y", "copy")),
)
VIEW_HINTS: dict[ViewName, tuple[tuple[str, str], ...]] = {
    "breaks": (("t", "try it"),),
    "recompiles": (("t", "try it"),),
    "guards": (("H", "only those that failed"), ("o", "by source, by cost")),
    "fusion": (("J", "mark it; on another: why not fused?"), ("w", "why not fused with...")),
    "time": (("o", "tree, flame"), ("O", "write a trace"), ("H", "the short ones too")),
}
"""What keys do in one view alone."""
_TICK = 0.4  # seconds between two looks at a compile that goes on


class WhyPane(RowKeys):
    """Frames, breaks, recompiles, guards and what else was decided; each kind is a view."""

    ID = "why"
    LABEL = "Why"
    HINTS: tuple[tuple[str, str], ...] = _HINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "view(-1)", show=False),
        Binding("right_square_bracket", "view(1)", show=False),
        Binding("comma", "graph(-1)", show=False),
        Binding("full_stop", "graph(1)", show=False),
        Binding("o", "order", show=False),
        Binding("H", "hide", show=False),
        Binding("J", "mark", show=False),
        Binding("w", "why_not", show=False),
        Binding("e", "edit", show=False),
        Binding("t", "try", show=False),
        Binding("O", "write", show=False),
        Binding("x", "repro", show=False),
        Binding("X", "repro(True)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(FilteredLines(self._lay), id=id)
        self._names = ViewLine()
        self._seen: tuple[object, ...] = ()
        self._looks: dict[ViewName, Look] = {}
        self._keys: dict[ViewName, object] = {}  # of the row that the cursor was on
        self._ticking = False

    def compose(self) -> ComposeResult:
        yield self._names
        yield self.lines

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """List what was decided so far in the run in hand."""
        versions, run = state.versions, queries.explained_run(state)
        node = state.node
        if self.is_mounted and node is not None:
            self.lines.mark_selected(state.selected, node.file, node.line)
        seen = (run and run.number, versions.decisions, versions.run, versions.graphs)
        if seen == self._seen or not self.is_mounted:
            return
        self._state, self._seen = state, seen
        if self.view == "time" and state.running and self.lines.items:
            return  # its timer lays it: spans arrive many times a second
        breaks = run.times_broken if run else 0
        self.mark = f"{breaks:,}" if breaks else ""
        self._lay()

    def on_mount(self) -> None:
        self.set_interval(_TICK, self._tick)

    def _tick(self) -> None:
        """While a compile goes on its times grow."""
        state = self._state
        if self.view == "time" and self.display and state is not None and (state.running or self._ticking):
            self._ticking = state.running
            self._lay()

    @property
    def _run(self) -> Run | None:
        state = self._state
        if state is not None and self.view == "time" and state.running:
            return state.run
        return queries.explained_run(state) if state is not None else None

    @property
    def look(self) -> Look:
        """How the user looks at the view that is shown."""
        return self._looks.get(self.view, Look())

    def _lay(self) -> None:
        """Make the rows of the view anew, for what is known and for the width."""
        state, run = self._state, self._run
        if state is None:
            return
        self._name_views(run)
        rows = self._made(state, run, self.look) if run is not None else ()
        self.lines.show_rows(rows, self._why_empty(state))

    def _made(self, state: State, run: Run, look: Look) -> Sequence[Row]:
        width, live = self.lines.room - 1, state.running and run is state.run
        look = replace(look, width=width, files=queries.source_files(state), now=time.time() if live else None)
        return views.listed(
            self.view, run, replace(look, earlier=queries.earlier_runs(state, run), typical=state.typical)
        )

    def show_marks(self) -> None:
        self._name_views(self._run)

    def _name_views(self, run: Run | None) -> None:
        counts = {name: views.count(name, run) for name in VIEWS} if run is not None else {}
        latest = self._state.run if self._state is not None else None
        older = f"run {run.number}" if run is not None and run is not latest else ""
        query = f"/{self.look.query}" if self.look.query else ""
        marked = f"marked: {self._marked.name}" if self._marked is not None else ""
        self._names.show(self.view, counts, " ".join(filter(None, (query, older, marked))))

    def _why_empty(self, state: State) -> str:
        if self.look.query:
            return f"nothing here has {self.look.query}: esc shows all"
        if state.beginning:
            return why_no_graph(state)
        if state.running:
            return "compiling: decisions are listed here as torch makes them"
        return views.empty(self.view, self._run)

    # ---------------------------------------------------------------- which view, and how

    def choose_view(self, view: ViewName) -> None:
        """Show another view, at the row that it was left at."""
        if self.lines.chosen is not None:
            self._keys[self.view] = self.lines.chosen.key
        self.view = view
        own = VIEW_HINTS.get(view, ())
        self.HINTS = (_HINTS[0], *own, *(hint for hint in _HINTS[1:] if hint[0] not in dict(own)))
        self.lines.show_rows((), "")
        self._lay()
        self.post_message(HintsChanged())
        key = self._keys.get(view)
        if (place := place_of(self.lines.items, key)) is not None:
            self.lines.place_cursor(place)

    def action_view(self, step: int) -> None:
        self.choose_view(VIEWS[(VIEWS.index(self.view) + step) % len(VIEWS)])

    def on_view_line_chosen(self, event: ViewLine.Chosen) -> None:
        event.stop()
        self.choose_view(event.view)

    def relist(self, look: Look, words: str = "") -> None:
        self._looks[self.view] = look
        self._lay()
        if words:
            self.post_message(Flash(words))

    def seek(self, searched: Searched, text: str, *, done: bool) -> None:
        """List only what has the text."""
        self.relist(replace(self.look, query=text))
        if text and done:
            self.post_message(Flash(f"only what has {text}; esc shows all"))
        searched.find(text, searched.place)

    def action_order(self) -> None:
        self.relist(replace(self.look, order=self.look.order + 1))

    def action_hide(self) -> None:
        self.relist(replace(self.look, hiding=not self.look.hiding))

    def reveal(self, decision: Decision) -> None:
        """Show the view of a decision, with the cursor on its row; what it is under is unfolded."""
        self.choose_view(views.OF_KIND[decision.kind])
        run, state = self._run, self._state
        if run is None or state is None:
            return
        self._looks[self.view] = replace(self.look, query="", hiding=False)
        everything = self._made(state, run, replace(self.look, whole=True))
        found = views.row_of(everything, decision)
        if found is None:
            self.relist(self.look, f"{self.view}: it has no row of its own")
            return
        row = everything[found]
        for fold in row.inside:
            if any(one.fold == fold and not one.is_open for one in self._made(state, run, self.look)):
                self._looks[self.view] = replace(self.look, turned=self.look.turned ^ {fold})
        self._lay()
        self.lines.place_cursor(place_of(self.lines.items, row.key) or 0)

    def action_close(self) -> None:
        if not self._step_block(-1):
            super().action_close()

    def action_unfold(self) -> None:
        if not self._step_block(1):
            super().action_unfold()

    def _step_block(self, step: int) -> bool:
        """Move the focus to the next block of a picture's row; whether the cursor is on one."""
        row = self.lines.chosen
        if row is None or not row.blocks:
            return False
        self.relist(replace(self.look, focus=flame.stepped(row.blocks, self.look.focus, step)))
        return True

    # ---------------------------------------------------------------- where rows lead

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        row = self.lines.chosen
        if row is not None and row.blocks:
            middle = flame.middle_of(self.lines.items, self.look.focus)
            self.relist(replace(self.look, focus=flame.nearest(row.blocks, middle)))
        elif row is not None:
            self._follow(row)

    def _follow(self, row: Row) -> None:
        """Show in the other panes what the row is about, where the run that is shown has it."""
        if (node := self._node_of(row)) is not None:
            self.post_message(NodeChosen(node))
        elif row.kernel is not None and self._is_shown:
            self.post_message(KernelChosen(*row.kernel))
        elif row.file and self._has_nodes(row.file, row.line):
            self.post_message(LineChosen(row.file, row.line))

    def _has_nodes(self, file: str, line: int) -> bool:
        """Whether a node was made at the line, and none of them is selected already."""
        state = self._state
        provenance = state.provenance if state is not None and self._is_shown else None
        nodes = provenance.nodes_at(file, line) if provenance is not None else []
        return bool(nodes) and state is not None and state.selected not in nodes

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        row = self.lines.chosen
        if row is None:
            self.post_message(Flash(self.lines.empty))
        elif row.enter == "edit" and row.file:
            self.post_message(EditorRequest(row.file, row.line))
        elif row.enter == "node" and (node := self._node_of(row)) is not None:
            self.post_message(NodeChosen(node, jump=True))
        elif row.enter == "kernel" and row.kernel is not None:
            self.post_message(KernelChosen(*row.kernel))
            self.post_message(SourceRequest())
        elif row.fold is not None:
            self.action_fold()
        elif row.blocks:
            focus = next((block.id for block in row.blocks if block.id == self.look.focus), row.blocks[0].id)
            self.relist(replace(self.look, focus=focus, zoom=0 if focus in (self.look.zoom, 0) else focus))
        else:
            self.post_message(Flash("this row leads nowhere: enter on a row with a sign before it unfolds it"))
