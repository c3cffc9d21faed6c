"""A widget with a title in its border, of which another title repaints the first line alone."""

from typing import Self

from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget


class Titled(Widget):
    """The base of what has a title in its border."""

    _title: Content = Content("")
    _titling: bool = False

    def set_title(self, title: Content) -> None:
        """Put a title in the border, if it is another one."""
        if not title.is_same(self._title):
            self._title = title
            self._titling = True
            self.border_title = title
            self._titling = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._titling and self.is_mounted:
            # a new title repaints the whole widget, with all that is in it, where its first line is enough
            left, top = self.content_offset
            regions = (Region(-left, -top, self.outer_size.width, 1),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
