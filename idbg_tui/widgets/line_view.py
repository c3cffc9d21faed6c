"""The base of widgets that draw their own lines: what Textual looks up again for each line is looked up once."""

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView


class LineView(ScrollView):
    """A ScrollView of which nothing but `focus_changed` is drawn anew when the focus comes or goes."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._base: Style | None = None
        self._line_width: int | None = None

    @property
    def base_style(self) -> Style:
        """The style of plain text here: `rich_style`, which goes through all ancestors at each call."""
        if self._base is None:
            self._base = self.rich_style
        return self._base

    @property
    def line_width(self) -> int:
        """The cells of a line that are not under the scrollbar; Textual looks for it in the layout at each call."""
        if self._line_width is None:
            self._line_width = self.scrollable_content_region.width
        return self._line_width

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._base = self._line_width = None

    def _size_updated(self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True) -> bool:
        self._line_width = None
        return super()._size_updated(size, virtual_size, container_size, layout)

    # ---------------------------------------------------------------- the focus

    def focus_changed(self) -> None:
        """Repaint what shows whether the focus is here."""

    def watch_has_focus(self, _has_focus: bool) -> None:
        # in place of Widget's, which matches it against the whole style sheet: no rule there is about its focus
        self.focus_changed()

    def _on_focus(self, event: events.Focus) -> None:
        self._take_focus(event, True, events.DescendantFocus(self))

    def _on_blur(self, event: events.Blur) -> None:
        self._take_focus(event, False, events.DescendantBlur(self))

    def _take_focus(self, event: events.Event, has_focus: bool, message: events.Event) -> None:
        event.prevent_default()  # Widget's handler, which does the same and repaints every line
        self.has_focus = has_focus
        if self.parent is not None:
            self.parent.post_message(message)
