"""A list over the screen, whose rows may lead somewhere."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget

from idbg.format.glyphs import MARKS
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow
from idbg_tui.widgets.notices import CopyRequest, Flash
from idbg_tui.widgets.search import Searching


@dataclass(frozen=True)
class Entry:
    """One row, drawn for a width when it is seen, and the `target` that it leads to. `here` asks for the cursor at
    first; a `picture` is part of a chart or names columns: the cursor goes over it."""

    draw: Callable[[int], StyledRow]
    target: object = None
    here: bool = False
    picture: bool = False

    @classmethod
    def fixed(cls, row: StyledRow, *, picture: bool = False) -> "Entry":
        """A row that is the same at every width, and leads nowhere."""
        return cls(lambda _: row, picture=picture)


def sentences(text: str, width: int, style: str = "") -> Iterator[Entry]:
    """A text on as many rows as it takes."""
    for line in textwrap.wrap(text, max(width - 2, 20)) or [""]:
        row: StyledRow = [(f" {line}", style)]
        yield Entry.fixed(row)


class ListingLines(ItemList[Entry]):
    """The entries that `make` returns for a width."""

    def __init__(self, make: Callable[[int], Sequence[Entry]], whole: str = "") -> None:
        """`whole`: what Y copies in the place of the rows."""
        super().__init__()
        self._make, self._copied = make, whole
        self._width = 0

    def is_head(self, item: Entry) -> bool:
        return item.picture

    def draw(self, item: Entry, width: int) -> StyledRow:
        return item.draw(width)

    def make(self) -> None:
        """Make the entries again, after what they show has changed."""
        first = not self.items
        self.items = self._make(self._width)
        if first:
            leading = [row for row, entry in enumerate(self.items) if entry.target is not None]
            here = (row for row in leading if self.items[row].here)
            self.cursor = next(here, leading[0] if leading else 0)
        self.styles.height = len(self.items)
        self.rows_changed()

    def action_copy_all(self) -> None:
        if self._copied:
            self.post_message(CopyRequest(self._copied, self.ALL))
        else:
            super().action_copy_all()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self.line_width != self._width:
            self._width = self.line_width
            self.make()


class Listing(ModalScreen[object], Searching):
    """Returns the target of the row that was opened, or None."""

    DEFAULT_CSS = """
    Listing { align: center middle; background: $background 60%; }
    Listing > Vertical {
        border: round $border; width: 140; max-width: 96%; height: auto; max-height: 84%;
        background: $surface; padding: 0 1;
    }
    Listing ListingLines { background: $surface; height: 1; max-height: 100%; }
    Listing SearchLine { dock: bottom; }
    """
    HINTS: ClassVar[tuple[str, ...]] = ("enter goes there", "y Y copy", "esc closes")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", show=False),
    ]

    def __init__(self, title: str, key: str, make: Callable[[int], Sequence[Entry]], whole: str = "") -> None:
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
    def search_room(self) -> Widget:
        return self.query_one(Vertical)

    def on_mount(self) -> None:
        self.lines.focus()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        chosen = self.lines.chosen
        if chosen is None or chosen.target is None:
            self.post_message(Flash("this row leads to no node"))
        else:
            self.dismiss(chosen.target)


class Reading(Listing):
    """A list whose rows lead nowhere."""

    HINTS = ("y Y copy", "esc closes")
