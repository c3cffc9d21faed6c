"""A line with a left and a right end: the header and the footer."""

from collections.abc import Iterable

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from idbg.format.glyphs import MARKS

BarPart = tuple[str, str]
"""A text and its style, as in textual.content."""


def cells(parts: Iterable[BarPart]) -> int:
    """How wide they are together."""
    return sum(cell_len(text) for text, _ in parts)


class Bar(Widget):
    """One line with a left and a right end; the right one stays whole, the left one is cut."""

    DEFAULT_CSS = """
    Bar { height: 1; background: $surface; color: $foreground; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: tuple[BarPart, ...] = ()
        self._right: tuple[BarPart, ...] = ()

    def show(self, left: list[BarPart], right: list[BarPart]) -> None:
        """Show these parts; repaints only if they changed."""
        if (tuple(left), tuple(right)) != (self._left, self._right):
            self._left, self._right = tuple(left), tuple(right)
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        right = _within(Content.assemble(*self._right), width)
        left = Content.assemble(*self._left)
        room = width - right.cell_length
        left = _within(left, max(0, room - 2)) if right else _within(left, room)
        return left + Content(" " * (room - left.cell_length)) + right


def _within(text: Content, width: int) -> Content:
    """At most `width` cells, with our own sign for what is cut: the terminal may have no other."""
    if text.cell_length <= width:
        return text
    dots = MARKS["ellipsis"]
    return text.truncate(max(0, width - len(dots))) + Content(dots[:width])
