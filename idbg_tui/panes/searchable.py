"""The base of panes of one list that can be searched."""

from idbg_tui.panes.base import Pane
from idbg_tui.widgets.search import Searching


class SearchablePane(Pane, Searching):
    """A pane of one list, with a line to search it under that."""

    DEFAULT_CSS = """
    SearchablePane { layout: vertical; }
    SearchablePane > ItemList { height: 1fr; }
    """
