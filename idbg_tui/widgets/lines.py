"""A list of any length in which a cursor key repaints two lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from idbg.format.glyphs import MARKS
from idbg_tui.widgets.changed_lines import ChangedLinesView
from idbg_tui.widgets.looks import look

StyledRow = Sequence[tuple[str, str]]
"""Pieces of one line: (text, name of a style, "" for the plain one); the names are those of Lines.LOOKS, or
"#112233 on #445566"."""


class Lines(ChangedLinesView, can_focus=True):
    """Rows made on demand by `row`, with a cursor; subclasses define `row_count` and `row`.

    Only the cells that change are repainted: `cursor` is no Textual reactive, which would repaint the whole widget.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "cursor": "on $foreground 8%",
        "cursor:focus": "on $primary 32%",
        "cursor:ansi": "on ansi_default underline",
        "cursor:ansi:focus": "on ansi_default reverse",
        "strong": "bold",
        "dim": "$foreground 55%",
        "dim:ansi": "dim $foreground 55%",
        "accent": "$text-primary",
        "lane": "$foreground 50%",
        "lane:ansi": "dim $foreground 50%",
        "lit lane": "bold $text-primary",
        "heat 0": "$foreground 55%",
        "heat 1": "$text-primary",
        "heat 2": "$text-accent",
        "heat 3": "$text-warning",
        "heat 4": "$text-error",
        "hue 0": "$text-primary",
        "hue 1": "$text-warning",
        "hue 2": "$text-success",
        "hue 3": "$text-accent",
        "hue 4": "$text-error",
        "hue 5": "$text-secondary",
        "match": "on $warning 40%",
        "reject": "$text-error",
        "fallback": "$text-warning",
        "pad": "$text-accent",
        "tile": "$text-secondary",
        "slow": "$foreground 75%",
        "unknown": "$foreground 75%",
        "clean": "$text-success",
    }
    DEFAULT_CSS = """
    Lines { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown,ctrl+f", "move_page(2)", "a page down", show=False),
        Binding("pageup,ctrl+b", "move_page(-2)", "a page up", show=False),
        Binding("ctrl+d", "move_page(1)", "half a page down", show=False),
        Binding("ctrl+u", "move_page(-1)", "half a page up", show=False),
        Binding("home,g", "move_to(0)", "top", show=False),
        Binding("end,G", "move_to(-1)", "bottom", show=False),
        Binding("enter", "open", "go there, open or fold it", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The user moved the cursor to a row."""

        lines: "Lines"
        index: int

    @dataclass
    class Opened(Message):
        """The user pressed enter, or clicked twice, on a row."""

        lines: "Lines"
        index: int

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor = 0
        self._styles: dict[str, Style] = {}
        self._whole: dict[str, Style] = {}  # the styles of pieces on what is behind them
        self._whole_on_cursor: dict[str, Style] = {}

    # ---------------------------------------------------------------- what a subclass defines

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def row(self, index: int, width: int) -> StyledRow:
        """The pieces of row `index`, made to fit `width` cells."""
        raise NotImplementedError

    def stops(self, index: int) -> bool:
        """Whether the cursor can be on row `index`: not on the heads of columns, nor on what is drawn."""
        return True

    # ---------------------------------------------------------------- drawing

    def rows_changed(self) -> None:
        """The number or the content of the rows changed: keep the cursor in range and repaint."""
        self.cursor = max(0, min(self.cursor, self.row_count - 1))
        self._set_height()
        self.repaint_changes()
        self.call_after_refresh(self.show_cursor)

    def _set_height(self) -> None:
        # assigning `virtual_size` lays the whole screen out again and repaints every scrollbar on it; the room that
        # this widget takes does not depend on its rows, so only its own scrollbar is updated
        self.set_reactive(Lines.virtual_size, Size(self.size.width, self.row_count))
        self.vertical_scrollbar.window_virtual_size = self.row_count
        self.scroll_y = min(self.scroll_y, self.max_scroll_y)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._forget_styles()

    def _forget_styles(self) -> None:
        for styles in (self._styles, self._whole, self._whole_on_cursor):
            styles.clear()

    def style(self, name: str) -> Style:
        """The style of one kind of piece in the present theme."""
        if name not in self._styles:
            self._styles[name] = self._made_style(name) if name else Style()
        return self._styles[name]

    def _made_style(self, name: str) -> Style:
        if name.startswith("#"):
            return Style.parse(name)  # a colour of its own, and one behind it: a cell of a picture
        return look(self, self.LOOKS, name)

    def line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.line_width
        if index >= self.row_count:
            return Strip.blank(width, self.base_style)
        styled = self._on_cursor if index == self.cursor else self._on_plain
        segments = [Segment(text, styled(name)) for text, name in self.row(index, width) if text]
        return Strip(segments).adjust_cell_length(width, styled(""))

    def _on_plain(self, name: str) -> Style:
        """The whole style of a piece."""
        if (style := self._whole.get(name)) is None:
            style = self._whole[name] = self.base_style + self.style(name)
        return style

    def _on_cursor(self, name: str) -> Style:
        """The same in the row under the cursor: the pieces keep their colours, and the cursor has the background."""
        if (style := self._whole_on_cursor.get(name)) is None:
            cursor = self.style("cursor")
            # in 16 colours: reversed pieces of several colours cannot be read
            own = Style() if cursor.reverse else self.style(name)
            style = self._whole_on_cursor[name] = self.base_style + cursor + own
        return style

    def on_resize(self, event: events.Resize) -> None:
        self._set_height()
        self.vertical_scrollbar.window_size = event.size.height
        self.call_after_refresh(self.show_cursor)

    def focus_changed(self) -> None:
        self._forget_styles()
        self.repaint_rows((self.cursor,))

    def repaint_rows(self, rows: Iterable[int]) -> None:
        """Repaint some rows, those that can be seen."""
        top = self.scroll_offset.y
        self.repaint_changes(row - top for row in rows)

    # ---------------------------------------------------------------- moving

    def place_cursor(self, index: int) -> None:
        """Put the cursor on a row without a message."""
        index = max(0, min(index, self.row_count - 1))
        if index != self.cursor:
            before, self.cursor = self.cursor, index
            self.repaint_rows((before, index))
        self.show_cursor()

    def show_cursor(self) -> None:
        """Scroll until the cursor can be seen, by half the height: a key in a dozen costs a repaint, not every one."""
        height = self.size.height
        top = self.scroll_offset.y
        if height <= 0 or top <= self.cursor < top + height:
            return
        target = self.cursor - height // 2
        self.scroll_to(y=max(0, min(target, self.row_count - height)), animate=False)

    def go(self, index: int) -> None:
        """Put the cursor on a row, as a user does, or on the next where it stops; where there is none, only scroll."""
        before, index = self.cursor, max(0, min(index, self.row_count - 1))
        self.place_cursor(self._stop(index))
        if self.cursor != before:
            self.post_message(self.Moved(self, self.cursor))
        elif index != before:
            self.scroll_to(y=self.scroll_offset.y + index - before, animate=False)

    @property
    def number(self) -> int:
        """The cursor's row, from 1."""
        return self.cursor + 1

    @property
    def last_number(self) -> int:
        """The number of the last row."""
        return self.row_count

    def go_to(self, number: int) -> None:
        """Put the cursor on a row, counted from 1, as a user does."""
        self.go(number - 1)

    def _stop(self, index: int) -> int:
        onward, back = range(index, self.row_count), range(index, -1, -1)
        ways = (onward, back) if index >= self.cursor else (back, onward)
        return next((row for way in ways for row in way if self.stops(row)), self.cursor)

    def action_move(self, step: int) -> None:
        self.go(self.cursor + step)

    def action_move_page(self, halves: int) -> None:
        self.go(self.cursor + halves * max(1, (self.size.height - 1) // 2))

    def action_move_to(self, index: int) -> None:
        self.go(index if index >= 0 else self.row_count + index)

    def action_open(self) -> None:
        if self.row_count:
            self.post_message(self.Opened(self, self.cursor))

    async def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if index >= self.row_count:
            return
        self.go(index)
        if event.chain > 1 and event.button == 1:
            self.action_open()


def cut(text: str, width: int, ellipsis: str | None = None) -> str:
    """`text` in at most `width` cells, cut in its middle: both ends identify a name."""
    if len(text) <= width and cell_len(text) <= width:
        return text
    ellipsis = MARKS["ellipsis"] if ellipsis is None else ellipsis
    if width <= len(ellipsis):
        return ellipsis[:width] if width > 0 else ""
    room = width - len(ellipsis)
    tail = room // 2
    if cell_len(text) != len(text):  # letters of two cells, or of none
        end = set_cell_size(text[::-1], tail)[::-1]
        return set_cell_size(text, room - tail) + ellipsis + end
    return text[: room - tail] + ellipsis + (text[-tail:] if tail else "")


def fit(text: str, width: int, ellipsis: str | None = None) -> str:
    """`text` in exactly `width` cells: cut in its middle, or padded on the right."""
    text = cut(text, width, ellipsis)
    return text + " " * (width - cell_len(text))


def clip(text: str, width: int, ellipsis: str | None = None) -> str:
    """A sentence in at most `width` cells, cut at its end: its beginning matters most."""
    if cell_len(text) <= width:
        return text
    ellipsis = MARKS["ellipsis"] if ellipsis is None else ellipsis
    return set_cell_size(text, max(0, width - len(ellipsis))) + ellipsis[: max(0, width)]
