"""A list of items, one a row, with search and copy."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType

from idbg_tui.widgets.lines import Lines, StyledRow, clip
from idbg_tui.widgets.notices import CopyRequest
from idbg_tui.widgets.search import SEARCH_KEYS, Finder, SearchRequest
from idbg_tui.widgets.section_rows import wrapped

Item = TypeVar("Item")

_WHOLE = 500  # cells of a row that is copied or searched: nothing is cut


class ItemList(Lines, Generic[Item]):
    """One item a row, drawn by `draw` when it is seen; where there is none, the sentence `empty`.

    `/`, n and N look for a text, y copies the cursor's row and Y all of them. Items are identified by their `key`: when
    others are shown, the cursor stays on the one that it was on. A subclass defines `draw`.
    """

    ALL: ClassVar[str] = "the whole list"
    """The name of what Y copies."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *SEARCH_KEYS,
        Binding("y", "copy", "copy the row", show=False),
        Binding("Y", "copy_all", "copy all rows", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.items: Sequence[Item] = ()
        self.empty = ""
        self._finder = Finder(self.searched)

    # ---------------------------------------------------------------- what a subclass defines

    def draw(self, item: Item, width: int) -> StyledRow:
        """The pieces of an item's row, made to fit `width` cells."""
        raise NotImplementedError

    def is_head(self, item: Item) -> bool:
        """Whether it names columns, or is part of a picture: the cursor goes over it."""
        return False

    def key(self, item: Item) -> object:
        """What is the same in two lists for the item that the cursor stays on; None for one that it does not."""
        return item

    def searched(self, index: int) -> str:
        """The text in which to look for row `index`."""
        return self.text(index) if self.items else ""

    def copied(self, index: int) -> tuple[str, str]:
        """What y copies of a row, and its name."""
        return self.text(index).strip(), "this row"

    def has_copy(self) -> bool:
        """Whether there is anything to copy; y is somebody else's key where there is not."""
        return bool(self.items)

    # ---------------------------------------------------------------- what is shown

    def show_items(self, items: Sequence[Item], empty: str = "") -> None:
        """Show other items, or the sentence `empty`."""
        key = None if (item := self.chosen) is None else self.key(item)
        self.items, self.empty = items, empty
        if key is not None:
            self.cursor = next((row for row, item in enumerate(items) if self.key(item) == key), self.cursor)
        self.rows_changed()

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor."""
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    @property
    def row_count(self) -> int:
        return len(self.items) or len(self._why_empty)

    @property
    def _why_empty(self) -> list[str]:
        """The sentence `empty` on as many rows as it takes."""
        return wrapped(self.empty, self.line_width - 2)

    def stops(self, index: int) -> bool:
        return not self.items or not self.is_head(self.items[index])

    def row(self, index: int, width: int) -> StyledRow:
        if not self.items:
            return [(clip(f" {self._why_empty[index]}", width), "dim")]
        pieces = self.draw(self.items[index], width)
        return self._lit(pieces) if self._finder else pieces

    def text(self, index: int) -> str:
        """A row whole, without its styles."""
        return "".join(text for text, _ in self.draw(self.items[index], _WHOLE)).rstrip()

    # ---------------------------------------------------------------- search and copy

    @property
    def place(self) -> int:
        """The cursor's row, as `find` counts them."""
        return self.cursor

    def find(self, text: str, start: int) -> int:
        """See `Searched`. Posts `Moved` where the cursor moves, as for a key."""
        count, row = self._finder.look_for(text, self.row_count, start)
        before = self.cursor
        self.place_cursor(row)
        if self.cursor != before:
            self.post_message(self.Moved(self, self.cursor))
        self.repaint_changes()
        return count

    def _lit(self, row: StyledRow) -> StyledRow:
        """The row with what is looked for marked in it."""
        pieces: list[tuple[str, str]] = []
        for text, style in row:
            column = 0
            for start, end in self._finder.spans(text):
                pieces += [(text[column:start], style), (text[start:end], "match")]
                column = end
            pieces.append((text[column:], style))
        return pieces

    def action_search(self) -> None:
        self.post_message(SearchRequest(self))

    def action_find_next(self, side: int) -> None:
        row = self._finder.next_row(self.cursor, side, self.row_count)
        if row is not None:
            self.go(row)

    def action_forget(self) -> None:
        self._finder.forget()
        self.repaint_changes()

    def action_copy(self) -> None:
        self.post_message(CopyRequest(*self.copied(self.cursor)))

    def action_copy_all(self) -> None:
        self.post_message(CopyRequest("\n".join(map(self.text, range(len(self.items)))), self.ALL))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """n and escape mean something here only while there is a search, y and Y where there is something to copy."""
        if action in ("find_next", "forget"):
            return bool(self._finder)
        return self.has_copy() if action in ("copy", "copy_all") else True
