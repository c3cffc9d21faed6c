"""A list over the screen, whose rows may lead somewhere."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

from idbg.format.glyphs import MARKS
from idbg_tui.widgets.covering import Covering
from idbg_tui.widgets.lines import Lines, StyledRow
from idbg_tui.widgets.notices import CopyRequest, Flash
from idbg_tui.widgets.section_keys import SectionKeys
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, Row


class ListingLines(SectionLines):
    """The rows that `make` returns for a width and an order of tables."""

    ALL = "the whole list"
    MARK = 0

    def __init__(self, make: Callable[[Look], Sequence[Row]], whole: str = "") -> None:
        """`whole`: what Y copies in the place of the rows."""
        super().__init__(self.make)
        self.look = Look()
        self._make, self._copied = make, whole

    def draw(self, item: Row, width: int) -> StyledRow:
        return item.draw(width)

    def make(self) -> None:
        """Make the rows again, after what they show has changed."""
        first = not self.items
        rows = self._make(replace(self.look, width=self.line_width))
        if first:
            leading = [at for at, row in enumerate(rows) if leads(row)]
            self.cursor = next((at for at in leading if rows[at].here), leading[0] if leading else 0)
        self.styles.height = len(rows)
        self.show_rows(rows, "")

    def action_copy_all(self) -> None:
        if self._copied:
            self.post_message(CopyRequest(self._copied, self.ALL))
        else:
            super().action_copy_all()


def leads(row: Row) -> bool:
    """Whether enter on the row leaves the list for what the row is about."""
    return bool(row.nodes) or row.enter == "why"


class Listing(Covering[Row | None], SectionKeys):
    """Returns the row that was opened, or None."""

    DEFAULT_CSS = """
    Listing { align: center middle; background: $background 60%; }
    Listing > Vertical {
        border: round $border; width: 140; max-width: 96%; height: auto; max-height: 84%;
        background: $surface; padding: 0 1;
    }
    Listing ListingLines { background: $surface; height: 1; max-height: 100%; }
    Listing SearchLine { dock: bottom; }
    """
    lines: ListingLines
    HINTS: ClassVar[tuple[str, ...]] = ("enter goes there", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "close", show=False),
    ]

    def __init__(self, title: str, key: str, make: Callable[[Look], Sequence[Row]], whole: str = "") -> None:
        """`key` opened it, and closes it again; "" where enter did. `whole`: what Y copies, if not the rows."""
        super().__init__()
        self._title = title
        self.lines = ListingLines(make, whole)
        if key:
            self._bindings.bind(key, "dismiss(None)", show=False)

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = Content(self._title)
        box.border_subtitle = Content(f" {MARKS['separator']} ".join(self.HINTS))
        with box:
            yield self.lines

    @property
    def look(self) -> Look:
        return self.lines.look

    def relist(self, look: Look, words: str = "") -> None:
        self.lines.look = look
        self.lines.make()
        if words:
            self.post_message(Flash(words))

    @property
    def search_room(self) -> Widget:
        return self.query_one(Vertical)

    def on_mount(self) -> None:
        self.lines.focus()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        row = self.lines.chosen
        if row is not None and leads(row):
            self.dismiss(row)
        elif row is not None and row.fold is not None:
            self.action_fold()
        else:
            self.post_message(Flash("this row leads to no node"))


class Reading(Listing):
    """A list whose rows lead nowhere."""

    HINTS = ("y Y copy", "esc closes")
