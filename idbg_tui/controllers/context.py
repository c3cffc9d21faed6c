"""What every controller gets: the app, the session, the state, and how to report errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from textual.app import App

from idbg.schema.errors import IdbgError
from idbg.session.session import Session
from idbg_tui.controllers.bars import Bars, Level
from idbg_tui.layout import Body
from idbg_tui.state.state import State

Actions = Mapping[str, Callable[[], object]]
"""What the keys of keymap.KEYS do, by their names."""


Reasons = Mapping[str, Callable[[], str]]
"""Why keys do nothing where the cursor is ("" where they do something), by their names."""


class Controller(Protocol):
    """Answers for some of the keys."""

    def actions(self) -> Actions:
        """What its keys do."""


class Explaining(Protocol):
    """Knows why some of its keys do nothing."""

    def reasons(self) -> Reasons:
        """Of each such key."""


@dataclass(frozen=True)
class Context:
    """The session, what is shown of it and where; `app` is Textual's side of it: timers, threads, screens."""

    app: App[None]
    session: Session
    state: State
    body: Body
    bars: Bars
    show: Callable[[], None]
    """Show the state in every pane."""

    def flash(self, text: str, level: Level = "info", *, of_run: bool = False) -> None:
        """Show a sentence in the footer until the next key; one about a run, until a run starts or ends too."""
        self.bars.flash(text, level, of_run=of_run)

    def attempt(self, do: Callable[[], object]) -> bool:
        """Call `do`; show its IdbgError, if it raises one, and return False."""
        try:
            do()
        except IdbgError as error:
            self.flash(error.in_one_line, "error")
            return False
        return True
