"""A line with the names of the views and their counts, which can be clicked."""

from collections.abc import Mapping

from textual.content import Content
from textual.widget import Widget

from idbg_tui.panes.why.views import VIEWS, ViewName
from idbg_tui.widgets.clicks import clickable

_SHORT = 5  # letters of a name where there is no room for all
_GAP = 2


class ViewLine(Widget):
    """The names of the views, the shown one in brackets, each with how many there are of what it lists."""

    DEFAULT_CSS = """
    ViewLine { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False  # the names are not underlined
        self._shown: tuple[ViewName, tuple[tuple[ViewName, int], ...], str] = (VIEWS[0], (), "")

    def show(self, view: ViewName, counts: Mapping[ViewName, int], words: str) -> None:
        """Name the views; `words` come after them."""
        shown = view, tuple(counts.items()), words
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        view, _, words = self._shown
        names = (
            clickable(
                f"{label}  ", "bold $primary" if name == view else "$foreground 60%", f"app.view('why', '{name}')"
            )
            for name, label in self._names()
        )
        return Content.assemble(*names, (words, "$warning"))

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
