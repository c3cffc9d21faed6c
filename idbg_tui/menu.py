"""The menu of what is under the cursor: what can be done with it, by which key, and why something is off."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from idbg_tui import bound_keys, keymap
from idbg_tui.bound_keys import Offer
from idbg_tui.panes.base import Pane
from idbg_tui.state.sentences import READ_ONLY
from idbg_tui.widgets.covering import Covering
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip
from idbg_tui.widgets.numbered import Numbered

_IN_PANES = {
    *(
        "open",
        "edit",
        "external",
        "copy",
        "copy_line",
        "try",
        "beside",
        "repro",
        "repro(True)",
        "owner",
        "why",
        "why_not",
        "lower",
    ),
    *("mark", "switch", "flip", "step(True)", "step(False)", "bump(True)", "bump(False)", "remove", "copy_all"),
}
"""Actions of panes that are about the thing under the cursor."""
_RUNNING = {"try", "repro", "repro(True)", "owner"}
_TITLE = 60  # cells
_LEAST = 16  # cells of the words before a reason
_EVERYWHERE = ("why", "why_not", "repro", "minify", "input", "user", "edit", "copy")
"""The same of keymap.KEYS."""


@dataclass(frozen=True)
class MenuItem:
    """One action: its keys, its words, and why it is off ("" where it is not)."""

    keys: Sequence[str]
    words: str
    off: str
    do: Callable[[], object]


@dataclass(frozen=True)
class Place:
    """Where the menu is opened: the pane, the keys in force, whether something can be run, and why actions that work
    everywhere are off there.
    """

    pane: Pane
    keys: dict[str, str]
    live: bool
    why_off: Callable[[str], str]


def items(place: Place, do: Callable[[str], object], do_in: Callable[[Offer], object]) -> Iterator[MenuItem]:
    """What can be done with what the pane's cursor is on: first what the pane has, then what works everywhere.

    `do` does an action that works everywhere, by its name, and `do_in` one of the pane's.
    """
    used: set[str] = set()
    for offer in bound_keys.of_chain(place.pane.chain()):
        if offer.action in _IN_PANES:
            used.update(offer.keys)
            yield MenuItem(offer.keys, offer.words, _why_off(place, offer), partial(do_in, offer))
    for key in keymap.KEYS:
        own = place.keys[key.name].split(",")
        if key.name in _EVERYWHERE and used.isdisjoint(own):
            yield MenuItem(own, key.words, place.why_off(key.name), partial(do, key.name))


def title(pane: Pane, node: str) -> str:
    """The pane, and the row that its cursor is on; where that is a node's, the node that is selected."""
    rows = pane.focus_target()
    text = f"line {rows.number}" if isinstance(rows, Numbered) else ""
    if isinstance(rows, ItemList):
        text = " ".join(rows.searched(rows.cursor).split())
    elif pane.ID == "graph":
        text = node
    return f"{pane.label}: {clip(text, _TITLE)}" if text else pane.label


def _why_off(place: Place, offer: Offer) -> str:
    if same := place.pane.same_everywhere(offer.action):
        return place.why_off(same)
    if offer.action in _RUNNING and not place.live:
        return READ_ONLY
    if why := place.pane.why_off(offer.action):
        return why
    name, _, parameters = offer.action.partition("(")
    allowed = offer.node.check_action(name, (parameters == "True)",) if parameters else ())
    return "" if allowed else "there is nothing here for it"


class MenuLines(ItemList[MenuItem]):
    """One action a row, with its key before it; dim with the reason where it is off."""

    def draw(self, item: MenuItem, width: int) -> StyledRow:
        keys = f" {keymap.spelled(','.join(item.keys)):>9}   "
        room = width - len(keys)
        if not item.off:
            return [(keys, "strong"), (clip(item.words, room), "")]
        words = clip(item.words, max(room - len(item.off) - 2, _LEAST))
        return [(keys, "dim"), (words, "dim"), (clip(f"  {item.off}", room - len(words)), "fallback")]


class Menu(Covering[MenuItem | None]):
    """Returns the chosen action: by enter, by a click, or by its own key."""

    DEFAULT_CSS = """
    Menu { align: center middle; background: $background 60%; }
    Menu > Vertical {
        border: round $border; background: $surface; padding: 0 1;
        width: 100; max-width: 96%; height: auto; max-height: 90%;
    }
    Menu MenuLines { background: $surface; height: auto; max-height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,exclamation_mark", "dismiss(None)", "close", show=False),
    ]

    def __init__(self, title: str, listed: Sequence[MenuItem]) -> None:
        super().__init__()
        self._title, self._lines = title, MenuLines()
        self._lines.items = listed
        self._lines.styles.height = len(listed)

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title, box.border_subtitle = Content(self._title), "enter or its key does it, esc closes"
        with box:
            yield self._lines

    def on_mount(self) -> None:
        self._lines.focus()

    def on_key(self, event: events.Key) -> None:
        chosen = next((item for item in self._lines.items if event.key in item.keys and event.key != "enter"), None)
        if chosen is not None:
            event.stop()
            event.prevent_default()  # Covering's, which flashes that a key is none of the list's
            self.dismiss(chosen)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.dismiss(self._lines.chosen)
