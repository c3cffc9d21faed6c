"""Repaint only the changed cells of a line-API widget.

Textual writes whole regions. Over SSH that is felt: a page of rows is 10 kB, a changed mark in one of them 50 bytes.
So the lines are remembered as they were painted, and only the span of a line that differs is refreshed.
"""

from collections.abc import Iterable, Iterator

from rich.cells import get_character_cell_size
from rich.style import Style
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip


class ChangedCellsView(ScrollView):
    """A ScrollView that repaints what differs; subclasses define `line(y)`, the visible line `y`."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._painted: dict[int, Strip] = {}

    def line(self, y: int) -> Strip:
        """The visible line `y`, exactly `line_width` cells wide."""
        raise NotImplementedError

    @property
    def line_width(self) -> int:
        """The cells of a line that are not under the scrollbar."""
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        strip = self.line(y).simplify()
        self._painted[y] = strip
        return strip

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painted.clear()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        # in place of ScrollView's, which repaints everything
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.repaint_changes()

    def repaint_changes(self, lines: Iterable[int] | None = None) -> None:
        """Repaint what differs from what was painted, in these visible lines or in all."""
        if not self.is_mounted:
            return
        width, height = self.line_width, self.size.height
        if not height:
            # hidden: it has no lines, and Textual would show those that it painted last when it is shown again
            self._painted.clear()
            self.refresh()
            return
        for y in range(height) if lines is None else lines:
            if not 0 <= y < height:
                continue
            painted = self._painted.get(y)
            if painted is None or painted.cell_length != width:
                self.refresh(Region(0, y, width, 1))
            elif span := difference(painted, self.line(y).simplify()):
                self.refresh(Region(span[0], y, span[1] - span[0], 1))


def difference(before: Strip, after: Strip) -> tuple[int, int] | None:
    """The cells, from and to (exclusive), outside of which two lines of one length are the same; None if they are."""
    if before == after:
        return None
    old, new = list(_cells(before)), list(_cells(after))
    if len(old) != len(new):
        return 0, max(len(old), len(new))
    changed = [x for x, (ours, theirs) in enumerate(zip(old, new, strict=True)) if ours != theirs]
    return (changed[0], changed[-1] + 1) if changed else None


def _cells(strip: Strip) -> Iterator[tuple[str, Style | None]]:
    """One entry for each cell: a wide character has an empty second one."""
    for text, style, _ in strip:
        for character in text:
            yield character, style
            for _ in range(1, get_character_cell_size(character)):
                yield character, style
