"""What is the user looking for in this text? A line to type in, under the text, that is there only while it is used."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input


class SearchLine(Input):
    """Posts `Sought` at each key, `done` with enter; escape gives up and takes the search back."""

    DEFAULT_CSS = """
    SearchLine { height: 1; border: none; padding: 0 1; background: $surface; display: none; }
    SearchLine.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    class Sought(Message):
        def __init__(self, text: str, *, done: bool = False) -> None:
            super().__init__()
            self.text = text
            self.done = done

    def __init__(self) -> None:
        super().__init__(placeholder="search", compact=True, select_on_focus=True)
        self.cursor_blink = False

    @classmethod
    def open_in(cls, pane: Widget) -> None:
        """Open the pane's line, which is made when it is first asked for."""
        line = next(iter(pane.query(cls)), None)
        if line is None:
            line = cls()
            pane.mount(line)
        line.add_class("-open")
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_class("-open"):
            self.post_message(self.Sought(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._end(event.value)

    def action_give_up(self) -> None:
        self._end("")

    def _end(self, text: str) -> None:
        self.remove_class("-open")
        self.post_message(self.Sought(text, done=True))
