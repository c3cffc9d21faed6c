"""The base class of panes: a name, a label, and `show`."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widget import Widget

from idbg_tui.widgets.notices import Flash
from idbg_tui.widgets.titled import Titled

if TYPE_CHECKING:
    from idbg_tui.state.state import State

PaneId = Literal[
    "graph",
    "source",
    "node",
    "findings",
    "kernel_diff",
    "benchmarks",
    "log",
    "rules",
    "repros",
    "why",
    "switches",
    "processes",
]
_SHORT = 6  # cells of "12,345"
KEYS = "1234567890-#"
"""The key that leads to each pane, by its number from 1."""


class Names(NamedTuple):
    """What a pane is called, where there is room, where there is little and where there is less."""

    label: str
    short: str
    tight: str


NAMES: dict[PaneId, Names] = {
    "graph": Names("Graph", "Graph", "Graph"),
    "source": Names("Source", "Source", "Src"),
    "node": Names("Node", "Node", "Node"),
    "findings": Names("Findings", "Findings", "Find"),
    "kernel_diff": Names("KernelDiff", "Diff", "Diff"),
    "benchmarks": Names("Benchmarks", "Bench", "Bench"),
    "log": Names("Log", "Log", "Log"),
    "rules": Names("Rules", "Rules", "Rules"),
    "repros": Names("Repros", "Repros", "Repro"),
    "why": Names("Why", "Why", "Why"),
    "switches": Names("Switches", "Switch", "Swit"),
    "processes": Names("Processes", "Procs", "Procs"),
}


class Pane(Titled):
    """One part of the screen, with a name of its own.

    `show` is called whenever the state may have changed: it is cheap and idempotent, compares versions
    (`state.versions`) and repaints only what changed. A pane posts messages (idbg_tui.messages), and asks no other
    pane. The first widget inside it that can be focused, or itself, gets the keys.
    """

    ID: ClassVar[PaneId]
    # (key, words) for the footer while the focus is here, the most useful first
    HINTS: tuple[tuple[str, str], ...] = ()

    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "find_nothing", "filter or find", show=False)]

    number: int = 0
    """Its place among the panes from 1, which the layout gives; 0 outside of it."""
    mark: str = ""
    """What stands behind the label in a tab: a count, a sign; set by `show`."""
    hidden: bool = False
    """There is nothing in it that this session could have: no tab names it."""
    typed_in: bool = False
    """Letters are text here, and no keys."""

    def show(self, state: "State") -> None:
        raise NotImplementedError

    @property
    def label(self) -> str:
        return NAMES[self.ID].label

    @property
    def name_with_number(self) -> str:
        """The label after the number of the key that leads here."""
        return self._numbered(self.label)

    @property
    def digit(self) -> str:
        """The key that leads here."""
        return KEYS[self.number - 1] if self.number else ""

    def _numbered(self, label: str) -> str:
        return f"{self.digit} {label}" if self.number else label

    def heading(self) -> Content:
        """What stands in the pane's border, or in its tab: number, label and mark."""
        return Content(" ".join(part for part in (self.name_with_number, self.mark) if part))

    def short_heading(self) -> str:
        """The same for a narrow tab: a short label, and the mark where that is short too."""
        return self._numbered(NAMES[self.ID].short) + self.short_mark

    def tight_heading(self) -> str:
        """The shortest label, with such a mark."""
        return self._numbered(NAMES[self.ID].tight) + self.short_mark

    @property
    def three_letters(self) -> str:
        """The digit and the beginning of the shortest label: for all panes in a line of 60 cells."""
        return self.digit + NAMES[self.ID].tight[:3]

    @property
    def short_mark(self) -> str:
        """The mark, if it is a count or a sign, behind a blank."""
        return f" {self.mark}" if 0 < len(self.mark) <= _SHORT else ""

    def action_find_nothing(self) -> None:
        """A pane that can be searched has a `/` of its own."""
        self.post_message(Flash("no search here: / finds in every pane, and in the form of the rules"))

    def why_off(self, action: str) -> str:
        """Why an action of this pane does nothing where the cursor is; "" where it does something."""
        return ""

    def same_everywhere(self, action: str) -> str:
        """The action of keymap.KEYS that this one is where the cursor is; "" where it is the pane's own."""
        return ""

    @property
    def views(self) -> Sequence[str]:
        """The names of its views; () where there is one."""
        return ()

    def choose_view(self, view: str) -> None:
        """Show the view of this name."""

    def reveal(self, key: Hashable) -> bool:
        """Put the cursor on the row with this key, whatever hides it. False if there is none."""
        return False

    def chain(self) -> list[DOMNode]:
        """The widget that takes the keys, and those around it up to this pane."""
        return [node for node in self.focus_target().ancestors_with_self if self in node.ancestors_with_self]

    def focus_target(self) -> Widget:
        """The widget that takes the keys of this pane."""
        if self.can_focus:
            return self
        return next((child for child in self.query("*") if child.can_focus), self)
