"""A question with a line for the answer, visible while it is open."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static
from textual.widgets.input import Selection


class Prompt(Vertical):
    """Posts `Answered` with enter, `Left` with escape. It stays open until it is closed: an answer can be refused."""

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 5; padding: 0 1; background: $surface; display: none; }
    Prompt.-open { display: block; }
    Prompt Static { height: auto; color: $foreground 70%; }
    Prompt Static.-wrong { color: $text-error; }
    Prompt Input { height: 1; border: none; padding: 0; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave the value as it is", show=False)]

    @dataclass
    class Answered(Message):
        """The user entered an answer."""

        value: str

    class Left(Message):
        """The user does not answer."""

    def compose(self) -> ComposeResult:
        yield Static(markup=False)
        line = Input(compact=True, select_on_focus=False)
        line.cursor_blink = False
        yield line

    def ask(self, question: str, value: str) -> None:
        """Open, with a value to begin with: selected, so that what is typed takes its place, and a key edits it."""
        line = self.query_one(Input)
        line.value = value
        line.selection = Selection(0, len(value))
        self._set_question(question, wrong=False)
        self.add_class("-open")
        line.focus()

    def refuse(self, why: str) -> None:
        """Show what is wrong with the answer; the user may correct it."""
        self._set_question(why, wrong=True)

    def close(self) -> None:
        """Take the question off the screen."""
        self.remove_class("-open")

    def _set_question(self, words: str, *, wrong: bool) -> None:
        line = self.query_one(Static)
        line.update(words)
        line.set_class(wrong, "-wrong")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered(event.value))

    def action_leave(self) -> None:
        self.post_message(self.Left())
