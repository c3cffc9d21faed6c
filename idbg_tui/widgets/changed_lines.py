"""Repaint only the changed lines of a line-API widget, which are remembered as they were painted."""

from collections.abc import Iterable

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip


class ChangedLinesView(ScrollView):
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
            if painted is None or painted.cell_length != width or painted != self.line(y).simplify():
                self.refresh(Region(0, y, width, 1))
