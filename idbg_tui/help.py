"""The help: every key, which can be filtered."""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from idbg_tui import bound_keys, keymap
from idbg_tui.panes.base import Pane
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow, clip
from idbg_tui.widgets.picker import FilteredScreen

HelpEntry = tuple[str, str, str]
"""Group, key as it reads, words."""
_MOVES = {keymap.spelled(key) for key in bound_keys.MOVES}


def entries(keys: Mapping[str, str], panes: Sequence[Pane], current: Pane) -> list[HelpEntry]:
    """Every key: those of the current pane first, then those that work everywhere, then the other panes'."""
    listed = _of_pane(current)
    listed += [("Moving", key, words) for key, words in keymap.MOVING]
    for key in keymap.KEYS:
        words = f"go to {key.words}" if key.leads_to_pane else key.words
        listed.append((key.group, keymap.spelled(keys[key.name]), words))
    return listed + [entry for pane in panes if pane is not current for entry in _of_pane(pane)]


def of_list(screen: Screen[Any], focused: Widget) -> list[HelpEntry]:
    """What works in a list over the screen, but for the keys that move the cursor: first what closes it."""
    closing = [bound for bound in bound_keys.of_widget(type(screen)) if bound.action.startswith("dismiss")]
    chain = [node for node in focused.ancestors_with_self if node is screen or screen in node.ancestors]
    offers = (offer for offer in bound_keys.of_chain(chain) if not offer.action.startswith("dismiss"))
    bound = [(keymap.spelled(",".join(offer.keys)), offer.words) for offer in offers]
    if closing:
        bound.insert(0, (keymap.spelled(",".join(each.key for each in closing)), closing[0].words))
    return [("In this list", keys, words) for keys, words in bound if not _MOVES.issuperset(keys.split())]


def _of_pane(pane: Pane) -> list[HelpEntry]:
    """What works in a pane, as it is now, and what else its footer names; the keys that move the cursor are listed
    once, for all.
    """
    bound = [(keymap.spelled(",".join(offer.keys)), offer.words) for offer in bound_keys.of_chain(pane.chain())]
    known = {key for keys, _ in bound for key in keys.split()}
    bound += [hint for hint in pane.HINTS if known.isdisjoint(hint[0].split())]
    return [(f"In {pane.label}", keys, words) for keys, words in bound if not _MOVES.issuperset(keys.split())]


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
        keys = f"   {item[1].rjust(self._keys)}   "
        return [(keys, "strong"), (clip(item[2], width - len(keys)), "")]


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

    def take(self) -> None:
        self.dismiss()
