"""The names of the columns above a graph's rows, and the legend of its colours below them."""

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from idbg_tui.panes.graph.columns import GraphColumns, head_at, heads
from idbg_tui.panes.graph.order import USUAL
from idbg_tui.panes.graph.rows import GraphLines
from idbg_tui.widgets.lines import Lines


class GraphHeads(Widget):
    """The names of the columns, above the rows: they stay while those scroll."""

    DEFAULT_CSS = """
    GraphHeads { height: 1; color: $foreground 55%; display: none; }
    GraphHeads.-shown { display: block; }
    """

    @dataclass
    class Clicked(Message):
        """The user clicked on the name of a column by which nodes can be sorted."""

        column: str

    def __init__(self, lines: GraphLines) -> None:
        super().__init__()
        self._lines = lines
        self._shown = Content()

    def show(self) -> None:
        """Name the columns of the graph as they are now; without a graph, take no line."""
        pieces = heads(self._columns) if self._lines.graph else ()
        shown = Content.assemble(*((text, "$text-primary" if look == "accent" else "") for text, look in pieces))
        if not shown.is_same(self._shown):
            self._shown = shown
            self.set_class(bool(shown), "-shown")
            self.refresh()

    @property
    def _columns(self) -> GraphColumns:
        return self._lines.columns(self._lines.line_width)

    def render(self) -> Content:
        return self._shown

    def on_click(self, event: events.Click) -> None:
        event.stop()
        name = head_at(self._columns, event.x)
        if event.button == 1 and name in USUAL:
            self.post_message(self.Clicked(name))


class GraphLegend(Widget):
    """What the colours mean, below the rows; where nodes are not coloured it takes no line."""

    DEFAULT_CSS = """
    GraphLegend { height: 1; display: none; }
    GraphLegend.-shown { display: block; }
    """

    def __init__(self, lines: GraphLines) -> None:
        super().__init__()
        self._lines = lines
        self._shown = Content()

    def show(self) -> None:
        """Describe the colours as they are now."""
        colours = self._lines.colours
        pieces = [(text, Lines.LOOKS[look] if look else "") for text, look in colours.legend()] if colours else []
        shown = Content.assemble((f" {colours.by}  ", "bold"), *pieces) if colours else Content()
        if not shown.is_same(self._shown):
            self._shown = shown
            self.set_class(colours is not None, "-shown")
            self.refresh()

    def render(self) -> Content:
        return self._shown
