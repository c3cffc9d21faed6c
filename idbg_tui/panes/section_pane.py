"""The base of panes of sections: their rows know what they refer to."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.schema.graphs import NodeId
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.messages import (
    ActionRequest,
    EditorRequest,
    Flash,
    KernelChosen,
    LineChosen,
    NodeChosen,
    ReproRequest,
    SidesRequest,
    SourceRequest,
    TryRequest,
)
from idbg_tui.panes import before_after
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.state import queries
from idbg_tui.state.state import State
from idbg_tui.widgets.lines import Lines
from idbg_tui.widgets.section_keys import SectionKeys
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, Row, place_of


class SectionPane(SearchablePane, SectionKeys):
    """A pane of sections of `idbg.views`: what its rows refer to moves the other panes, and decides what keys do.

    A subclass lists the rows and says whose run they are about; only a row that needs more than what it refers to has
    keys of its own.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "open the row's line in $EDITOR", show=False),
        Binding("t", "try", "compile again with what the row suggests", show=False),
        Binding("x", "repro", "write a repro of the row", show=False),
        Binding("X", "repro(True)", "minify what the row is about", show=False),
        Binding("p", "beside", "before and after the row's finding, side by side", show=False),
    ]
    WHOLE: ClassVar[str] = "all of this view"  # the name of what Y copies
    NOTHING_HERE: ClassVar[str] = "this row leads nowhere: enter on a row with a sign before it unfolds it"

    def __init__(self, lines: SectionLines | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = lines or SectionLines(self.lay, self.WHOLE)
        self.view: str = ""
        """Of several views of one pane the shown one: each is looked at in its own way."""
        self._looks: dict[str, Look] = {}
        self._left: dict[str, Hashable] = {}  # the key of the row that the cursor was on
        self._state: State | None = None
        self._seen: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.lines

    # ---------------------------------------------------------------- what a subclass defines

    def lay(self) -> None:
        """List the rows anew, for what is known, for the look and for the width."""
        raise NotImplementedError

    @property
    def run(self) -> Run | None:
        """The run that the rows are about."""
        return self._state.shown if self._state is not None else None

    def is_news(self, state: State, *seen: object) -> bool:
        """Whether what the rows are made of has changed, in a pane that is mounted: the state is then this one."""
        if seen == self._seen or not self.is_mounted:
            return False
        self._state, self._seen = state, seen
        return True

    def mark_selected(self, state: State) -> None:
        """Mark the rows about the selected node."""
        if self.is_mounted and state.node is not None:
            self.lines.mark_selected(state.selected, state.node.file, state.node.line)

    # ---------------------------------------------------------------- how the user looks at it

    @property
    def look(self) -> Look:
        """How the user looks at what is shown."""
        return self._looks.get(self.view, Look())

    def fitted_look(self, state: State) -> Look:
        """The same, for the width and with the names of the user's files."""
        return replace(self.look, width=self.lines.room - 1, files=queries.source_files(state))

    def relist(self, look: Look, words: str = "") -> None:
        """List the rows again for another look, and flash the `words`."""
        self._looks[self.view] = look
        self.lay()
        if words:
            self.post_message(Flash(words))

    def turn_to(self, view: str) -> None:
        """Show another view, at the row that it was left at."""
        if self.lines.chosen is not None:
            self._left[self.view] = self.lines.chosen.key
        self.view = view
        self.lines.show_rows((), "")
        self.lay()
        if (place := place_of(self.lines.items, self._left.get(view))) is not None:
            self.lines.place_cursor(place)

    def reveal(self, key: Hashable) -> bool:
        if (at := place_of(self.lines.items, key)) is not None:
            self.lines.place_cursor(at)
            return True
        look = replace(self.look, query="", hiding=False)
        self.relist(replace(look, whole=True))
        at = place_of(self.lines.items, key)
        inside = self.lines.items[at].inside if at is not None else ()
        self.relist(look)
        for fold in inside:
            if any(row.fold == fold and not row.is_open for row in self.lines.items):
                self.relist(replace(self.look, turned=self.look.turned ^ {fold}))
        self.lines.place_cursor(place_of(self.lines.items, key) or 0)
        return at is not None

    # ---------------------------------------------------------------- what rows refer to

    @property
    def _is_shown(self) -> bool:
        return self._state is not None and self._state.shown is self.run

    def nodes_of(self, row: Row | None) -> Sequence[NodeId]:
        """The nodes that a row is about, of those that the shown run has."""
        run = self.run
        if row is None or run is None or not self._is_shown:
            return ()
        known = (node for node in row.nodes if node.graph in run.graphs)
        return [node for node in known if node.name in run.graphs[node.graph].by_name]

    def node_of(self, row: Row | None) -> NodeId | None:
        """The first of them."""
        return next(iter(self.nodes_of(row)), None)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        event.stop()
        if (row := self.lines.chosen) is not None:
            self.moved_to(row)

    def moved_to(self, row: Row) -> None:
        """The cursor came to a row: show in the other panes what it is about, where the run that is shown has it."""
        nodes, state = self.nodes_of(row), self._state
        if nodes:
            if state is None or state.selected not in nodes:
                self.post_message(NodeChosen(nodes[0]))
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
        row = self.lines.chosen  # subclasses have `open_row`: Textual would call this handler beside one of theirs
        if row is not None:
            self.open_row(row)
        elif self.lines.empty:
            self.post_message(Flash(self.lines.empty))

    def open_row(self, row: Row) -> None:
        """Go to what the row opens; of several nodes to the one after the selected one."""
        nodes = self.nodes_of(row)
        if row.sides is not None:
            self.post_message(before_after.of_sides(row.sides))
        elif row.enter == "edit" and row.file:
            self.post_message(EditorRequest(row.file, row.line))
        elif row.enter == "node" and nodes:
            selected = self._state.selected if self._state is not None else None
            after = nodes.index(selected) + 1 if selected in nodes else 0
            self.post_message(NodeChosen(nodes[after % len(nodes)], jump=True))
        elif row.enter == "kernel" and row.kernel is not None:
            self.post_message(KernelChosen(*row.kernel))
            self.post_message(SourceRequest())
        elif row.enter == "partitions":
            self.post_message(ActionRequest("partitions"))
        elif row.fold is not None:
            self.action_fold()
        else:
            self.post_message(Flash(self.NOTHING_HERE))

    # ---------------------------------------------------------------- what can be done about a row

    def why_off(self, action: str) -> str:
        row = self.lines.chosen
        if action == "try" and (row is None or row.again is None):
            return "nothing to try here: t works where a row of breaks or recompiles offers it"
        if action == "beside":
            found = before_after.of_row(self._state, self.run, row) if self._state is not None else ""
            return found if isinstance(found, str) else ""
        if action == "open" and (row is None or not (row.enter or row.sides or row.fold is not None)):
            return self.NOTHING_HERE
        return ""

    def same_everywhere(self, action: str) -> str:
        row = self.lines.chosen
        if action == "edit" and not (row is not None and row.file):
            return "edit"
        if action in ("repro", "repro(True)") and self.sought is None:
            return "repro" if action == "repro" else "minify"
        return ""

    @property
    def sought(self) -> Sought | None:
        """What a script can be written of where the cursor is."""
        row = self.lines.chosen
        node = self.node_of(row)
        return (row.sought if row is not None else None) or (Sought("node", node) if node is not None else None)

    def action_try(self) -> None:
        """Run again with what the row suggests."""
        row = self.lines.chosen
        if row is not None and row.again is not None:
            self.post_message(TryRequest(row.again))
        else:
            self.post_message(Flash(self.why_off("try")))

    def action_beside(self) -> None:
        """Show what is before and after what the row reports; of a row without that, what the key does."""
        found = before_after.of_row(self._state, self.run, self.lines.chosen) if self._state is not None else ""
        if isinstance(found, SidesRequest):
            self.post_message(found)
        elif found == before_after.NOTHING:
            self.post_message(ActionRequest("pass_diff"))
        else:
            self.post_message(Flash(found))

    def action_edit(self) -> None:
        """Open the row's line in the user's editor; of a row without one, what the key does."""
        row = self.lines.chosen
        self.post_message(EditorRequest(row.file, row.line) if row is not None and row.file else ActionRequest("edit"))

    def action_repro(self, smallest: bool = False) -> None:
        """A script of what the row names, or of its node; of a row without one, what the key does."""
        if (sought := self.sought) is not None:
            self.post_message(ReproRequest(sought, smallest=smallest))
        else:
            self.post_message(ActionRequest("minify" if smallest else "repro"))
