"""The session's scripts that show a failure again: their status, size and age."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from idbg.schema.repros import Sought
from idbg.schema.session_repros import SessionRepro
from idbg.views.repros import sought_words
from idbg_tui.messages import ActionRequest, CopyRequest, EditorRequest, Flash, ReproRequest, ScriptRequest
from idbg_tui.panes.repros import scripts
from idbg_tui.panes.repros.rows import Columns, Heads, Item, Note, ReproRow, drawn, drawn_note, heads, items
from idbg_tui.panes.searchable import FindingPane
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow

_AGING = 10.0  # seconds between two looks at how old they are


class ReproLines(ItemList[Item]):
    """The repros, each with what is said below it."""

    ALL = "the script"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path()
        self._state: State | None = None
        self._columns: dict[int, Columns] = {}

    def show_repros(self, state: State, empty: str) -> None:
        """Show these; the cursor stays on its repro, and a new one above takes it where it was on the newest."""
        self._state, self.empty, self.folder = state, empty, Path(state.folder or ".")
        before = self.newest
        self._lay()
        if self.newest != before and self.cursor_number in (before, None):
            self.place_cursor(1)

    @property
    def newest(self) -> int | None:
        """The number of the newest repro."""
        return next((item.number for item in self.items if isinstance(item, ReproRow)), None)

    @property
    def cursor_number(self) -> int | None:
        """The number of the repro that the cursor is on."""
        item = self.chosen
        return item.number if isinstance(item, ReproRow | Note) else None

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self._state is not None:
            self._lay()

    def _lay(self) -> None:
        state = self._state
        assert state is not None
        self._columns.clear()
        told = items(state.history.repros, state.history.runs, self.line_width, live=state.live)
        self.show_items(told, self.empty)
        if self.cursor == 0 and told:
            self.place_cursor(1)

    def is_head(self, item: Item) -> bool:
        return isinstance(item, Heads)

    def key(self, item: Item) -> object:
        match item:
            case ReproRow():
                return item.number, ""
            case Note(other=None):
                return item.number, item.text
            case Note(other=other):
                return item.number, other
            case _:
                return None

    def draw(self, item: Item, width: int) -> StyledRow:
        if width not in self._columns:
            self._columns[width] = Columns.of(self.items, width)
        columns = self._columns[width]
        match item:
            case Heads():
                return heads(columns)
            case ReproRow():
                return drawn(item, columns, time.time())
            case Note():
                return drawn_note(item, width)

    # ---------------------------------------------------------------- what is copied

    @property
    def path(self) -> str:
        """The script that the cursor's row is about; "" where it has none."""
        match self.chosen:
            case Note(other=other) if other is not None:
                return other.path
            case ReproRow() | Note() as item:
                return item.repro.path
            case _:
                return ""

    def action_copy(self) -> None:
        """The script's path; of a row that has none what it says."""
        if self.path:
            self.post_message(CopyRequest(self.path, "the script's path"))
        else:
            super().action_copy()

    def action_copy_all(self) -> None:
        """The whole script."""
        if not self.path:
            self.post_message(Flash("this row has no script to copy"))
            return
        script = scripts.read(self.path, self.folder)
        if script.text:
            self.post_message(CopyRequest(script.text, self.ALL))
        else:
            self.post_message(Flash(f"{script.path}: {script.problem}", "warning"))


class ReprosPane(FindingPane):
    """The repros of the session, newest first; enter reads the script."""

    ID = "repros"
    LABEL = "Repros"
    TIGHT = "Repro"
    HINTS = (
        *(("enter", "read"), ("X", "minify"), ("x", "again"), ("y", "copy path"), ("Y", "copy script")),
        *(("e", "edit"), ("/", "find")),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", show=False),
        Binding("x", "repro", show=False),
        Binding("X", "repro(True)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = ReproLines()
        self._seen: tuple[Sequence[SessionRepro], bool] | None = None

    def compose(self) -> ComposeResult:
        yield self.lines

    def on_mount(self) -> None:
        self.set_interval(_AGING, self.lines.repaint_changes)

    def show(self, state: State) -> None:
        kept = state.history.repros
        if (self._seen is not None and self._seen[0] is kept) or not self.is_mounted:
            return
        self._seen = kept, state.live
        self.lines.show_repros(state, _why_empty(state))
        self.mark = str(len(kept)) if kept else ""

    # ---------------------------------------------------------------- keys

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        match self.lines.chosen:
            case Note(other=other) as note if other is not None:
                self.post_message(ScriptRequest(note.repro, other))
            case ReproRow() | Note() as item:
                self.post_message(ScriptRequest(item.repro))
            case _:
                self.post_message(Flash("enter on a repro reads its script"))

    def action_edit(self) -> None:
        """Open the script in the user's editor; elsewhere what the key does."""
        if not self.lines.path:
            self.post_message(ActionRequest("edit"))
            return
        self.post_message(EditorRequest(scripts.read(self.lines.path, self.lines.folder).path))

    def action_repro(self, smallest: bool = False) -> None:
        """The same again; or on with the search for the smallest, from where it was stopped."""
        item = self.lines.chosen
        if not isinstance(item, ReproRow | Note):
            self.post_message(ActionRequest("minify" if smallest else "repro"))
            return
        sought = item.repro.sought
        if sought.kind == "violation" and sought.node is None:
            sought = Sought("failure")  # strict rules wrote it of what stopped the run
        if smallest and item.repro.minified is not None and item.repro.minified.minimal:
            self.post_message(Flash(f"{sought_words(sought)}: this is 1-minimal, nothing can be left out"))
            return
        self.post_message(ReproRequest(sought, smallest=smallest, run=item.repro.run))


def _why_empty(state: State) -> str:
    if not state.live:
        return "this saved session has no repros"
    return "no repro yet: x writes one of what the cursor is on, X finds the smallest script that fails so"
