"""The pane Node: all facts of the selected node, and where each leads."""

import textwrap

from textual import events
from textual.app import ComposeResult
from textual.content import Content

from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg_tui.messages import CopyRequest, EditorRequest, KernelChosen, NodeChosen
from idbg_tui.panes.node.facts import Fact, facts
from idbg_tui.panes.searchable import SearchablePane
from idbg_tui.state import queries
from idbg_tui.state.sentences import why_no_graph
from idbg_tui.state.state import State
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow

_LABEL = 11  # cells: "⚠ fallback" and a blank
_NOT_YET = Fact("", "no node is selected", "dim")


class NodePane(SearchablePane):
    """Everything about the selected node, unabridged; enter on an input, a user or another stage goes there."""

    ID = "node"
    LABEL = "Node"
    HINTS = (("enter", "go"), ("i", "input"), ("u", "user"), ("/", "find"), ("y", "copy"))

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._seen: tuple[object, ...] = ()
        self._facts: list[Fact] = []

    def compose(self) -> ComposeResult:
        yield FactList()

    def show(self, state: State) -> None:
        """Show the selected node from its top; one whose facts alone changed keeps the cursor."""
        versions = state.versions
        seen = (versions.graphs, versions.selection, versions.rules, versions.run, versions.costs)
        if seen == self._seen or not self.is_mounted:
            return
        self._seen = seen
        known = facts(state) or [Fact("", f"no node is selected: {why_no_graph(state)}", "dim")]
        name = state.heading.title if state.heading else state.node.name if state.node else ""
        broken = queries.violations_of(state, state.selected) if state.selected else []
        signs = "".join(dict.fromkeys(SEVERITY_SIGNS[violation.severity] for violation in broken))
        self.mark = signs
        self.set_title(self.heading() + Content(f" {MARKS['rule']} {name}" if name else ""))
        if known != self._facts:
            same = self._facts[:1] == known[:1]
            self._facts = known
            self.query_one(FactList).take(known, keep=same)

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        chosen = self.query_one(FactList).chosen
        if chosen is None:
            return
        fact = chosen[2]
        if fact.node is not None:
            self.post_message(NodeChosen(fact.node, jump=True))
        elif fact.kernel is not None:
            kernel, call = fact.kernel, fact.call
            launch = (call.handle, call.line) if call else ()
            self.post_message(KernelChosen(kernel.frame, kernel.part, kernel.name, *launch))
        elif fact.file:
            self.post_message(EditorRequest(fact.file, fact.line))


FactRow = tuple[str, str, Fact]
"""The label, on a fact's first row only; as much of its text as the row takes; the fact."""


class FactList(ItemList[FactRow]):
    """Facts, wrapped to the width."""

    def __init__(self) -> None:
        super().__init__()
        self._facts: list[Fact] = [_NOT_YET]
        self._width = 0

    def draw(self, item: FactRow, width: int) -> StyledRow:
        label, text, fact = item
        style = "accent" if not fact.style and (fact.node or fact.kernel) else fact.style
        name, gap, rest = text.partition("  ")
        sign = fact.style if label and fact.style not in ("strong", "dim") else "dim"
        if not self._labelled:
            return [(" " + text, style)]
        return [(f" {label:<{_LABEL}}", sign), (name, style), (gap + rest, "" if style == "accent" else style)]

    def key(self, item: FactRow) -> object:
        return None  # the cursor stays on its row: the facts of another node stand in the same order

    @property
    def _labelled(self) -> bool:
        """False for the sentence that stands where there is no node."""
        return any(fact.label for fact in self._facts)

    def searched(self, index: int) -> str:
        label, text, _ = self.items[index] if self.items else ("", "", None)
        return f"{label} {text}"

    def has_copy(self) -> bool:
        return self._labelled

    def copied(self, index: int) -> tuple[str, str]:
        fact = self.items[index][2]
        return fact.copied or fact.text, "this fact"

    def action_copy_all(self) -> None:
        texts = [f"{fact.label:<{_LABEL}}{fact.text}".rstrip() for fact in self._facts]
        self.post_message(CopyRequest("\n".join(texts), "all that is known of this node"))

    def take(self, facts: list[Fact], *, keep: bool) -> None:
        """Show other facts; `keep` leaves the cursor and the scroll where they are."""
        self._facts = facts
        if not keep:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self._wrap()

    def on_resize(self, event: events.Resize) -> None:
        if self.size.width != self._width:
            self._wrap()

    def _wrap(self) -> None:
        self._width = self.size.width
        room = max(self._width - (_LABEL if self._labelled else 0) - 2, 20)
        rows = [
            (fact.label if number == 0 else "", text, fact)
            for fact in self._facts
            for number, text in enumerate(_wrapped(fact.text, room))
        ]
        self.show_items(rows)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, drop_whitespace=True) or [""]
