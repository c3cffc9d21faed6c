"""How does a pane of rows let the user look for a text?"""

from idbg_tui.messages import Flash
from idbg_tui.panes.base import Pane
from idbg_tui.widgets.finding import FindableLines, told
from idbg_tui.widgets.search import SearchLine


class FindingPane(Pane):
    """A pane with `FindableLines` and a `SearchLine` under them."""

    DEFAULT_CSS = """
    FindingPane { layout: vertical; }
    FindingPane > FindableLines { height: 1fr; }
    """
    _sought_from = 0

    def on_findable_lines_search_asked(self, event: FindableLines.SearchAsked) -> None:
        event.stop()
        self._sought_from = self.query_one(FindableLines).cursor
        SearchLine.open_in(self)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        event.stop()
        lines = self.query_one(FindableLines)
        count = lines.find(event.text, self._sought_from)
        if event.done:
            lines.focus()
            if event.text:
                self.post_message(Flash(told(event.text, count)))
