"""Repaint only the changed lines of a line-API widget, which are remembered as they were painted."""

from collections.abc import Iterable
from typing import Self

from textual.geometry import Region
from textual.strip import Strip

from idbg_tui.widgets.line_view import LineView


class ChangedLinesView(LineView):
    """A LineView that repaints what differs; subclasses define `line(y)`, the visible line `y`."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._painted: dict[int, Strip] = {}
        self._doubtful: set[int] = set()  # lines that may differ from what was painted
        self._drawn: dict[int, Strip] = {}  # those that do: drawn to compare them, and not painted yet

    def line(self, y: int) -> Strip:
        """The visible line `y`, exactly `line_width` cells wide."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        drawn = self._drawn.pop(y, None)
        strip = drawn if drawn is not None and drawn.cell_length == self.line_width else self.line(y).simplify()
        self._painted[y] = strip
        return strip

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if not regions:
            self._doubtful.clear()
            self._drawn.clear()
        for region in regions:
            for y in region.line_range:
                self._drawn.pop(y, None)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painted.clear()
        self._drawn.clear()

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
        height = self.size.height
        if not height:
            # hidden: it has no lines, and Textual would show those that it painted last when it is shown again
            self._painted.clear()
            self.refresh()
            return
        self._doubtful.update(range(height) if lines is None else lines)
        self.check_idle()

    def _check_refresh(self) -> None:
        """Draw once what several changes may have changed, now that all of them were made."""
        width, height = self.line_width, self.size.height
        doubtful, self._doubtful = self._doubtful, set()
        for y in doubtful & set(range(height)):
            drawn = self.line(y).simplify()
            if self._painted.get(y) != drawn:
                self.refresh(Region(0, y, width, 1))
                self._drawn[y] = drawn
        super()._check_refresh()
