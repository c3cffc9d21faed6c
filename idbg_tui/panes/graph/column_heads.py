"""The names of the graph's columns, above its rows."""

from textual.content import Content
from textual.widget import Widget

from idbg_tui.panes.graph.columns import heads
from idbg_tui.panes.graph.rows import GraphLines


class GraphHeads(Widget):
    """The names of the columns, above the rows: they stay while those scroll."""

    DEFAULT_CSS = """
    GraphHeads { height: 1; color: $foreground 55%; display: none; }
    GraphHeads.-shown { display: block; }
    """

    def __init__(self, lines: GraphLines) -> None:
        super().__init__()
        self._lines = lines
        self._shown = ""

    def show(self) -> None:
        """Name the columns of the graph as they are now; without a graph, take no line."""
        width = self._lines.line_width
        shown = "".join(text for text, _ in heads(self._lines.columns(width))) if self._lines.graph else ""
        if shown != self._shown:
            self._shown = shown
            self.set_class(bool(shown), "-shown")
            self.refresh()

    def render(self) -> Content:
        return Content(self._shown)
