"""What does every pane have in common? A number, a label, and `show`."""

from typing import ClassVar, Self

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from idbg_tui.messages import Flash
from idbg_tui.state.state import State


class Pane(Widget):
    """One numbered part of the screen.

    `show` is called whenever the state may have changed: it is cheap and idempotent, compares versions
    (`state.versions`) and repaints only what changed. A pane posts messages (idbg_tui.messages), and asks no other
    pane. The first widget inside it that can be focused, or itself, gets the keys.
    """

    NUMBER: ClassVar[int] = 0
    LABEL: ClassVar[str] = ""
    SHORT: ClassVar[str] = ""  # the label where there is little room
    # (key, words) for the footer while the focus is here, the most useful first
    HINTS: tuple[tuple[str, str], ...] = ()

    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "find_nothing", show=False)]

    mark: str = ""
    """What stands behind the label in a tab: a count, a sign; set by `show`."""
    typed_in: bool = False
    """Letters are text here, and no keys."""
    _title: Content = Content("")
    _titling: bool = False

    def show(self, state: State) -> None:
        raise NotImplementedError

    def heading(self) -> Content:
        """What stands in the pane's border, or in its tab: number, label and mark."""
        return Content(" ".join(part for part in (str(self.NUMBER), self.LABEL, self.mark) if part))

    def short_heading(self) -> str:
        """The same for a narrow tab: a short label, and a mark only if it is short too."""
        label = self.SHORT or self.LABEL
        return f"{self.NUMBER} {label}" + (f" {self.mark}" if 0 < len(self.mark) <= 4 else "")

    def set_title(self, title: Content) -> None:
        """Put a title in the border, if it is another one."""
        if not title.is_same(self._title):
            self._title = title
            self._titling = True
            self.border_title = title
            self._titling = False

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._titling and self.is_mounted:
            # a new title repaints the whole pane, with all that is in it, where its first line is enough
            left, top = self.content_offset
            regions = (Region(-left, -top, self.outer_size.width, 1),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def action_find_nothing(self) -> None:
        """A pane that can be searched has a `/` of its own."""
        self.post_message(Flash("no search here: / finds in every pane, and in the form of the rules"))

    def focus_target(self) -> Widget:
        """The widget that takes the keys of this pane."""
        if self.can_focus:
            return self
        return next((child for child in self.query("*") if child.can_focus), self)
