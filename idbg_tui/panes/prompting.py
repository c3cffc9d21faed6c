"""A base class of panes that prompt for a value."""

from collections.abc import Callable

from textual.widget import Widget
from textual.widgets import Input

from idbg.schema.errors import IdbgError
from idbg_tui.messages import Flash
from idbg_tui.panes.base import Pane
from idbg_tui.widgets.prompt import Prompt


class PromptingPane(Pane):
    """A pane that composes a `Prompt`. What takes an answer may raise IdbgError: the user may then mend the answer."""

    _answer: Callable[[str], None] | None = None

    def shown_widget(self) -> Widget:
        """What takes the keys while there is no prompt."""
        raise NotImplementedError

    def focus_target(self) -> Widget:
        return self.query_one(Prompt).query_one(Input) if self._answer is not None else self.shown_widget()

    def prompt(self, question: str, value: str, take: Callable[[str], None], refused: str = "") -> None:
        """Ask for a value, with one to begin with; `refused` says at once why that one will not do as it is."""
        self._answer = take
        self.query_one(Prompt).ask(question, value)
        if refused:
            self.query_one(Prompt).refuse(refused)

    def attempt(self, do: Callable[[], object]) -> None:
        """Do something that may be refused; if it is, say why."""
        try:
            do()
        except IdbgError as error:
            self.post_message(Flash(error.in_one_line, "error"))

    def on_prompt_answered(self, event: Prompt.Answered) -> None:
        event.stop()
        try:
            if self._answer is not None:
                self._answer(event.value)
        except IdbgError as error:
            self.query_one(Prompt).refuse(error.in_one_line)
            return
        self._end()

    def on_prompt_left(self, event: Prompt.Left) -> None:
        event.stop()
        self._end()

    def _end(self) -> None:
        self._answer = None
        self.query_one(Prompt).close()
        self.shown_widget().focus()
