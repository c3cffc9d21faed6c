"""Marks, as in vim: `m` and a letter remembers the place, `'` and the letter goes back to it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from textual.events import Key

from idbg.schema.graphs import NodeId
from idbg_tui.controllers.context import Actions, Context
from idbg_tui.controllers.navigation import Navigation
from idbg_tui.messages import NodeChosen, NumberRequest
from idbg_tui.panes.base import PaneId
from idbg_tui.panes.section_pane import SectionPane
from idbg_tui.widgets.numbered import Numbered


@dataclass(frozen=True)
class Mark:
    """A place: the pane, the row there by its key (of a section) and its number, and the selected node."""

    pane: PaneId
    key: Hashable
    number: int
    node: NodeId | None


class Marks:
    """Sets marks and goes to them. The letter is the next key, so it is taken before any widget gets it."""

    def __init__(self, context: Context, navigation: Navigation) -> None:
        self._context, self._navigation = context, navigation
        self._marks: dict[str, Mark] = {}
        self._wanted: Callable[[str], None] | None = None

    def actions(self) -> Actions:
        """What the keys do."""
        return {"mark": self._begin_mark, "go_to_mark": self._begin_go}

    def take(self, key: Key) -> bool:
        """Take the letter of a mark. False where none is expected, or the key is no letter: then it means what it
        always does.
        """
        wanted, self._wanted = self._wanted, None
        name = "'" if key.key == "apostrophe" else key.character or ""
        if wanted is None or not (name.isalnum() or name == "'"):
            return False
        wanted(name)
        return True

    def _begin_mark(self) -> None:
        self._wanted = self._set
        self._context.flash("set which mark? A letter")

    def _begin_go(self) -> None:
        self._wanted = self._go
        known = f"there are {' '.join(sorted(self._marks))}" if self._marks else "none is set yet: m and a letter"
        self._context.flash(f"go to which mark? {known}; ' goes back")

    def _set(self, name: str) -> None:
        pane = self._context.body.panes[self._context.body.current]
        rows = pane.focus_target()
        row = pane.lines.chosen if isinstance(pane, SectionPane) else None
        self._marks[name] = Mark(
            pane.ID,
            row.key if row is not None else None,
            rows.number if isinstance(rows, Numbered) else 0,
            self._context.state.selected,
        )
        self._context.flash(f"mark {name} is set: ' {name} goes back to it")

    def _go(self, name: str) -> None:
        mark = self._marks.get(name)
        if name == "'":
            self._navigation.jump(back=True)
        elif mark is None:
            self._context.flash(f"there is no mark {name}: m {name} sets it")
        else:
            self._go_to(mark)

    def _go_to(self, mark: Mark) -> None:
        body = self._context.body
        if mark.node is not None:
            self._navigation.choose_node(NodeChosen(mark.node, jump=True))
            self._context.show()
        body.go(mark.pane)
        if (mark.pane == "graph" and mark.node is not None) or body.panes[mark.pane].reveal(mark.key):
            return
        if mark.number:
            self._navigation.go_to_number(NumberRequest(str(mark.number)))
