"""The help: every key, which can be filtered."""

from collections.abc import Mapping

from textual.widgets import Input

from idbg_tui import keymap
from idbg_tui.panes.base import Pane
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.picker import FilteredScreen

HelpEntry = tuple[str, str, str]
"""Group, key as it reads, words."""


def entries(keys: Mapping[str, str], panes: list[Pane]) -> list[HelpEntry]:
    """Every key, the panes' own after those that work everywhere."""
    listed = [("Moving", key, words) for key, words in keymap.MOVING]
    listed += [(key.group, keymap.spelled(keys[key.name]), key.words) for key in keymap.KEYS]
    listed += [(f"In {pane.LABEL}", key, words) for pane in panes for key, words in pane.HINTS]
    return listed


class HelpLines(ItemList[HelpEntry | str]):
    """Entries under their groups; only those that contain every word of the filter."""

    def __init__(self, keys: list[HelpEntry]) -> None:
        super().__init__()
        self._entries = keys
        self._keys = max(len(key) for _, key, _ in keys)
        self.items = self._matching("")

    def filter(self, query: str) -> None:
        """Show only the keys whose group, name and words have every word of the query."""
        self.items = self._matching(query)
        self.rows_changed()

    def _matching(self, query: str) -> list[HelpEntry | str]:
        """The keys, each group's after its name and a blank row."""
        words = query.lower().split()
        rows: list[HelpEntry | str] = []
        group = ""
        for entry in self._entries:
            if not all(word in " ".join(entry).lower() for word in words):
                continue
            if entry[0] != group:
                group = entry[0]
                rows += ["", group] if rows else [group]
            rows.append(entry)
        return rows or [f'no key does "{query}": ctrl+p searches every action by name']

    def draw(self, item: HelpEntry | str, width: int) -> StyledRow:
        if isinstance(item, str):
            return [(f" {item}", "accent")]
        return [(f"   {item[1].rjust(self._keys)}", "strong"), (f"   {item[2]}", "")]


class Help(FilteredScreen[None]):
    """Every key in one list; typing filters it."""

    DEFAULT_CSS = """
    Help > Vertical { width: 90; max-width: 96%; height: 90%; }
    """
    PLACEHOLDER = "filter: run, fold, kernel, ..."
    PAGE = 20

    def __init__(self, keys: list[HelpEntry]) -> None:
        self._help_lines = HelpLines(keys)
        super().__init__(self._help_lines, "Keys", "type to filter, esc closes")

    def filter(self, typed: str) -> None:
        self._help_lines.filter(typed)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss()
