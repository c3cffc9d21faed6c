"""Two lists in place of the rules: the changes that would make a graph accepted, and the diff of the edits."""

import difflib
from dataclasses import dataclass
from typing import ClassVar

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message

from idbg.checking.relax import Relaxation, relaxations
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import Graph
from idbg.schema.violations import SEVERITIES
from idbg_tui.messages import CopyRequest, Flash
from idbg_tui.panes.rules.document import RulesDocument
from idbg_tui.state import queries, sentences, stages
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit

_NAME, _SHORT = 18, 6  # cells of a rule's name at most, and where its number needs the room


class RelaxRows(ItemList[Relaxation]):
    """The smallest change of each broken rule; space makes one, `A` all; `H` lists every severity."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "switch", "make the change", show=False),
        Binding("A", "all", "make all changes", show=False),
        Binding("H", "severities", "every severity, or only rejects", show=False),
    ]

    @dataclass
    class Wanted(Message):
        """The user wants these changes made."""

        relaxations: list[Relaxation]

    def __init__(self) -> None:
        super().__init__()
        self.every = False  # not only what rejects
        self._state: State | None = None

    def show_state(self, state: State | None) -> None:
        """Show what the graphs on the screen would take, of the chosen severities; the same again scrolls nothing."""
        self._state = state
        level = queries.level(state) if state is not None and state.accelerator is not None else []
        severities = SEVERITIES if self.every else SEVERITIES[:1]
        found = [state.checks.findings(graph) for graph in level] if state is not None else []
        changes, empty = relaxations(found, severities), self._why_none(state, level)
        if (changes, empty) != (self.items, self.empty):
            self.show_items(changes, empty)

    def _why_none(self, state: State | None, level: list[Graph]) -> str:
        """Why the list is empty: of the stage that is shown, with what the others break."""
        if state is None or not level:
            return sentences.why_no_graph(state) if state is not None else "no graph yet"
        here, other = stages.names_of(level), sentences.other_levels(state)
        words = "no rule is broken" if self.every else "nothing is rejected"
        key = "A adds one" if self.every else "H lists the rest"
        return f"{here}: {words} {MARKS['separator']} {other}: v goes there" if other else f"{words}: {key}"

    def key(self, item: Relaxation) -> object:
        return None  # the cursor stays on its row: the next change moves up where one was made

    def draw(self, item: Relaxation, width: int) -> StyledRow:
        names, room, removes = self._columns(width)
        counts = max(len(f"{one.count:,}") for one in self.items)
        says = _change_words(item)
        says = cut(says, room) if MARKS["arrow"] in says else clip(says, room)
        return [
            (f" {SEVERITY_SIGNS[item.rule.severity]} ", item.rule.severity),
            (fit(item.rule.name, names) + "  ", "strong"),
            (says.ljust(room), "" if item.relaxed else "dim"),
            (f"  {removes}{item.count:>{counts},} ", "clean"),
        ]

    def _columns(self, width: int) -> tuple[int, int, str]:
        """Cells of a name and of what it takes, and the word before the count: a new number is never cut for those."""
        longest = min(_NAME, max(len(one.rule.name) for one in self.items))
        says = [_change_words(one) for one in self.items]
        numbers = max((len(words) for words in says if MARKS["arrow"] in words), default=0)
        names = room = 0
        for removes in ("removes ", "-"):
            room = width - 8 - len(removes) - max(len(f"{one.count:,}") for one in self.items)
            names = max(min(longest, room - numbers), min(longest, _SHORT))
            if room - names >= numbers:
                break
        return names, max(0, min(room - names, max(map(len, says)))), removes

    def action_open(self) -> None:
        self.post_message(Flash("space makes this change, A all of them"))

    def action_switch(self) -> None:
        if self.items:
            self.post_message(self.Wanted([self.items[self.cursor]]))

    def action_all(self) -> None:
        if not self.items:
            raise SkipAction  # the pane's key then, which adds a rule
        self.post_message(self.Wanted(list(self.items)))

    def action_severities(self) -> None:
        self.every = not self.every
        self.show_state(self._state)

    def action_copy(self) -> None:
        text = "\n".join(f"{one.rule.name}: {_change_words(one)} (removes {one.count})" for one in self.items)
        self.post_message(CopyRequest(text, "what it would take"))


class DiffRows(ItemList[str]):
    """A unified diff of the rules against the text that they come from."""

    def __init__(self) -> None:
        super().__init__()
        self.added = self.removed = 0

    def show_document(self, document: RulesDocument) -> None:
        """Show what the edits changed of what they are compared with, or why that cannot be read."""
        after, empty = document.text, f"no difference from {document.base.label}"
        try:
            before = document.base_text()
        except AcceleratorError as error:
            before, empty = after, f"nothing to compare with: {error.message}"
        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
        self.added = sum(line.startswith("+") for line in lines)
        self.removed = sum(line.startswith("-") for line in lines)
        if (lines, empty) != (self.items, self.empty):
            self.show_items(lines, empty)

    def key(self, item: str) -> object:
        return None  # two lines of a text can be the same

    def draw(self, item: str, width: int) -> StyledRow:
        style = {"+": "clean", "-": "reject", "@": "accent"}.get(item[0], "dim")
        return [(clip(f" {item}", width), style)]

    def action_copy(self) -> None:
        self.post_message(CopyRequest("\n".join(self.items), "the diff"))


def _change_words(item: Relaxation) -> str:
    return item.words.replace("→", MARKS["arrow"]) if item.relaxed else "switch it off: no value of its keys does"
