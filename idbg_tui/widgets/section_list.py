"""A list of a section's rows; rows about the selected node or line are marked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.message import Message

from idbg.format.glyphs import MARKS
from idbg.schema.graphs import NodeId
from idbg.views.tree import Table
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow
from idbg_tui.widgets.search import SearchLine
from idbg_tui.widgets.section_rows import Row, place_of


class SectionLines(ItemList[Row]):
    """The rows of one view; the first cell is the mark of those about what is selected."""

    ALL = "all of this view"
    MARK: ClassVar[int] = 1
    """Cells of the mark before a row."""
    LOOKS: ClassVar[dict[str, str]] = Lines.LOOKS | {
        "block": "on $primary 30%",
        "block:ansi": "",
        "other block": "on $secondary 30%",
        "other block:ansi": "",
        "block focus": "bold on $primary 80%",
        "block focus:ansi": "reverse",
    }

    @dataclass
    class HeadClicked(Message):
        """The user clicked on the head of a column, or on the name of what the rows are."""

        table: Table
        name: str

    def __init__(self, laid: Callable[[], object], whole: str = "") -> None:
        """`laid` is called when the width is another: rows are made for it. `whole` names what Y copies, if not ALL."""
        super().__init__()
        self.ALL = whole or self.ALL  # type: ignore[misc]
        self._laid = laid
        self._width = 0
        self._selected: tuple[str, int] = ("", 0)  # file and line
        self._node: NodeId | None = None

    @property
    def room(self) -> int:
        """Cells of a row; while it is hidden, as many as when it was seen."""
        return self.line_width if self.size.width else self._width

    def show_rows(self, rows: Sequence[Row], empty: str, *, top: bool = False) -> None:
        """Show other rows; the cursor stays on what it was on (with `top` it goes to the first row), and off heads."""
        key = self.chosen.key if self.chosen is not None and not top else None
        self.items, self.empty = rows, empty
        if top:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self.cursor = min(self.cursor if (at := place_of(rows, key)) is None else at, max(len(rows) - 1, 0))
        while rows and rows[self.cursor].head and self.cursor + 1 < len(rows):
            self.cursor += 1
        self.rows_changed()

    def mark_selected(self, node: NodeId | None, file: str, line: int) -> None:
        """Mark the rows about this node, or this line of the user's."""
        if (node, file, line) != (self._node, *self._selected):
            self._node, self._selected = node, (file, line)
            self.repaint_changes()

    def draw(self, item: Row, width: int) -> StyledRow:
        marked = (bool(item.file) and (item.file, item.line) == self._selected) or self._node in item.nodes
        return [(MARKS["bar"] if marked else " ", "accent"), *item.draw(width - 1)]

    def key(self, item: Row) -> object:
        return item.key

    def is_head(self, item: Row) -> bool:
        return item.head

    def searched(self, index: int) -> str:
        return self.text(index)[self.MARK :] if self.items else ""

    def copied(self, index: int) -> tuple[str, str]:
        item = self.items[index]
        return item.copied or self.text(index)[self.MARK :].strip(), "this row"

    async def on_click(self, event: events.Click) -> None:
        # Textual calls that of Lines after this one
        at = event.y + self.scroll_offset.y
        row = self.items[at] if at < len(self.items) else None
        if event.button == 1 and row is not None and row.head and row.table is not None:
            right = self.line_width - event.x
            name = next((name for name, end in row.ends if right <= end), row.table.noun)
            self.post_message(self.HeadClicked(row.table, name))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self.line_width != self._width:
            self._width = self.line_width
            self._laid()


class FilteredLines(SectionLines):
    """A search lists only the rows that have the text; whoever makes the rows leaves out the others."""

    def find(self, text: str, start: int) -> int:
        """Mark `text` in the rows; the cursor goes to the first that is no fold."""
        self._finder.look_for(text, 0, start)
        matching = (at for at, row in enumerate(self.items) if not row.head and row.fold is None)
        if text:
            self.place_cursor(next(matching, start))
        self.repaint_changes()
        return len(self.items)

    def action_forget(self) -> None:
        self.post_message(SearchLine.Sought("", done=True))
