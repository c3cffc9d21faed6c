"""Which one of a few? A small list over the screen."""

from collections.abc import Container
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from idbg_tui.widgets.lines import Lines, Row, clip


class Choices(Lines):
    """One choice a row, the present one marked, and dim what cannot be had."""

    def __init__(self, choices: list[tuple[str, str]], current: str, broken: Container[str]) -> None:
        super().__init__()
        self._choices = choices
        self._current = current
        self._broken = broken
        self._width = max(len(name) for name, _ in choices)
        self.cursor = next((row for row, (name, _) in enumerate(choices) if name == current), 0)

    @property
    def row_count(self) -> int:
        return len(self._choices)

    def row(self, index: int, width: int) -> Row:
        name, words = self._choices[index]
        mark = "*" if name == self._current else " "
        return [
            (f" {mark} ", "accent"),
            (name.ljust(self._width), "dim" if name in self._broken else "strong"),
            (f"   {clip(words, width - self._width - 6)}", "dim"),
        ]


class Picker(ModalScreen[str | None]):
    """Gives the chosen name, or None. `choices` are names, each with a few words; `broken` are names that are dim."""

    DEFAULT_CSS = """
    Picker { align: center middle; background: $background 60%; }
    Picker > Vertical {
        border: round $border; width: 84; max-width: 90%; height: auto; max-height: 80%;
        background: $surface; padding: 0 1;
    }
    Picker Choices { height: auto; max-height: 100%; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", show=False)]

    def __init__(self, title: str, choices: list[tuple[str, str]], current: str, broken: Container[str] = ()) -> None:
        super().__init__()
        self._title = title
        self._broken = broken
        self._choices = choices
        self._current = current

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title = self._title
        box.border_subtitle = "enter takes it, esc leaves it as it is"
        with box:
            choices = Choices(self._choices, self._current, self._broken)
            choices.styles.height = len(self._choices)
            yield choices

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.dismiss(self._choices[event.index][0])
