"""How does a pane of rows let the user look for a text?"""

from idbg_tui.panes.base import Pane
from idbg_tui.widgets.search import Searching


class FindingPane(Pane, Searching):
    """A pane of one list, with a line to search it under that."""

    DEFAULT_CSS = """
    FindingPane { layout: vertical; }
    FindingPane > ItemList { height: 1fr; }
    """
