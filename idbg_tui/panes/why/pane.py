"""The compiler's decisions and their reasons: one view at a time."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.schema.runs import Run
from idbg_tui.messages import (
    Flash,
    HintsChanged,
)
from idbg_tui.panes.why import flame, views
from idbg_tui.panes.why.row_keys import RowKeys
from idbg_tui.panes.why.view_line import ViewLine
from idbg_tui.panes.why.views import VIEWS, ViewName
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.search import Searched
from idbg_tui.widgets.section_list import FilteredLines
from idbg_tui.widgets.section_rows import Look, Row

_HINTS = (
    *(("[ ]", "view"), ("enter", "go there, unfold"), ("/", "filter"), (", .", "graph before, after")),
    *(
        ("e", "edit"),
        ("f", "fold all"),
        ("s", "sort"),
        ("o", "order"),
        ("H", "hide, show all"),
        ("x", "repro"),
        ("y", "copy"),
    ),
)
VIEW_HINTS: dict[ViewName, tuple[tuple[str, str], ...]] = {
    "breaks": (("t", "try it"),),
    "recompiles": (("t", "try it"),),
    "guards": (("H", "only those that failed"), ("o", "by source, by cost")),
    "fusion": (("J", "pick it; on another: why not fused?"), ("w", "why not fused with...")),
    "time": (("o", "tree, flame"), ("O", "write a trace"), ("H", "the short ones too")),
}
"""What keys do in one view alone."""
_TICK = 0.4  # seconds between two looks at a compile that goes on


class WhyPane(RowKeys):
    """Frames, breaks, recompiles, guards and what else was decided; each kind is a view."""

    ID = "why"
    HINTS: tuple[tuple[str, str], ...] = _HINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "view(-1)", "the view before", show=False),
        Binding("right_square_bracket", "view(1)", "the next view", show=False),
        Binding("comma", "graph(-1)", "the graph before the pass", show=False),
        Binding("full_stop", "graph(1)", "the graph after the pass", show=False),
        Binding("o", "order", "another order: by source, by cost; as a tree, as a flame", show=False),
        Binding("H", "hide", "hide what matters least, or list all", show=False),
        Binding("J", "mark", "pick it; on another: why are the two not fused?", show=False),
        Binding("w", "why_not", "why is it not fused with another that you pick?", show=False),
        Binding("O", "write", "write the time of the run as a trace", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(FilteredLines(self.lay), id=id)
        self.view: ViewName = VIEWS[0]
        self._names = ViewLine()
        self._ticking = False

    def compose(self) -> ComposeResult:
        yield self._names
        yield self.lines

    # ---------------------------------------------------------------- showing

    def show(self, state: State) -> None:
        """List what was decided so far in the run in hand."""
        versions, run = state.versions, queries.explained_run(state)
        self.mark_selected(state)
        if not self.is_news(state, run and run.number, versions.decisions, versions.run, versions.graphs):
            return
        if self.view == "time" and state.running and self.lines.items:
            return  # its timer lays it: spans arrive many times a second
        breaks = run.times_broken if run else 0
        self.mark = f"{breaks:,}" if breaks else ""
        self.lay()

    def on_mount(self) -> None:
        self.set_interval(_TICK, self._tick)

    def _tick(self) -> None:
        """While a compile goes on its times grow."""
        state = self._state
        if self.view == "time" and self.display and state is not None and (state.running or self._ticking):
            self._ticking = state.running
            self.lay()

    @property
    def run(self) -> Run | None:
        state = self._state
        if state is not None and self.view == "time" and state.running:
            return state.run
        return queries.explained_run(state) if state is not None else None

    def lay(self) -> None:
        """Make the rows of the view anew, for what is known and for the width."""
        state, run = self._state, self.run
        if state is None:
            return
        self._name_views(run)
        rows = self._made(state, run, self.fitted_look(state)) if run is not None else ()
        self.lines.show_rows(rows, self._why_empty(state))
        self._offer()

    def _made(self, state: State, run: Run, look: Look) -> Sequence[Row]:
        now = time.time() if state.running and run is state.run else None
        past = queries.earlier_runs(state, run)
        return views.listed(self.view, run, replace(look, now=now, earlier=past, typical=state.typical))

    def show_marks(self) -> None:
        self._name_views(self.run)

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
        return views.empty(self.view, self.run)

    # ---------------------------------------------------------------- which view, and how

    @property
    def views(self) -> Sequence[str]:
        return VIEWS

    def choose_view(self, view: str) -> None:
        """Show another view, at the row that it was left at."""
        self.turn_to(view)
        self._offer()

    def _offer(self) -> None:
        """Name the keys of the view, and of those that the row decides the ones that do something there."""
        row = self.lines.chosen
        own = VIEW_HINTS.get(self.view, ())
        if row is None or row.again is None:
            own = tuple(hint for hint in own if hint[0] != "t")
        hints = (_HINTS[0], *own, *(hint for hint in _HINTS[1:] if hint[0] not in dict(own)))
        if hints != self.HINTS:
            self.HINTS = hints
            self.post_message(HintsChanged())

    def action_view(self, step: int) -> None:
        self.choose_view(VIEWS[(VIEWS.index(self.view) + step) % len(VIEWS)])

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

    def reveal_in(self, name: str, key: Hashable) -> None:
        """Show a view, named as in `idbg.views`, with the cursor on this row; what it is under is unfolded."""
        self.choose_view(views.showing(name))
        if self.run is not None and not self.reveal(key):
            self.post_message(Flash(f"{self.view}: it has no row of its own"))

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

    # ---------------------------------------------------------------- blocks of a picture

    def moved_to(self, row: Row) -> None:
        self._offer()
        if row.blocks:
            middle = flame.middle_of(self.lines.items, self.look.focus)
            self.relist(replace(self.look, focus=flame.nearest(row.blocks, middle)))
        else:
            super().moved_to(row)

    def open_row(self, row: Row) -> None:
        if row.blocks:
            focus = next((block.id for block in row.blocks if block.id == self.look.focus), row.blocks[0].id)
            self.relist(replace(self.look, focus=focus, zoom=0 if focus in (self.look.zoom, 0) else focus))
        else:
            super().open_row(row)
