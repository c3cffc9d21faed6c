"""A line with the names of the views and their counts, which can be clicked."""

from collections.abc import Mapping
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from idbg_tui.panes.why.views import VIEWS, ViewName

_SHORT = 5  # letters of a name where there is no room for all
_GAP = 2


class ViewLine(Widget):
    """The names of the views, the shown one in brackets, each with how many there are of what it lists."""

    DEFAULT_CSS = """
    ViewLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Chosen(Message):
        """The user clicked on a view's name."""

        view: ViewName

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[ViewName, tuple[tuple[ViewName, int], ...], str] = (VIEWS[0], (), "")

    def show(self, view: ViewName, counts: Mapping[ViewName, int], words: str) -> None:
        """Name the views; `words` come after them."""
        shown = view, tuple(counts.items()), words
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        view, _, words = self._shown
        styles = [
            (f"{label}  ", "bold $primary" if name == view else "$foreground 60%") for name, label in self._names()
        ]
        return Content.assemble(*styles, (words, "$warning"))

    def _names(self) -> list[tuple[ViewName, str]]:
        """The views as they are named in the room there is: with counts, without, or shortened but the shown one."""
        view, counts, words = self._shown
        known = dict(counts)
        counted = [(name, f"{name} {known[name]:,}" if known.get(name) else name) for name in VIEWS]
        short = [(name, label if name == view else name[:_SHORT]) for name, label in counted]
        ways = (counted, [(name, name) for name in VIEWS], short)
        framed = [[(name, f"[{label}]" if name == view else label) for name, label in way] for way in ways]
        room = self.size.width - 1 - len(words)  # the padding, but for the gap after the last
        return next((way for way in framed if sum(len(label) + _GAP for _, label in way) - _GAP <= room), framed[-1])

    def on_click(self, event: events.Click) -> None:
        event.stop()
        end = 1
        for name, label in self._names():
            end += len(label) + _GAP
            if event.x < end:
                self.post_message(self.Chosen(name))
                return
