"""A small list over the screen to choose from, filtered by typing."""

import re
from collections.abc import Container
from typing import Any, ClassVar, Generic

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from idbg_tui.widgets.covering import Answer, Covering
from idbg_tui.widgets.item_list import ItemList
from idbg_tui.widgets.lines import Lines, StyledRow, clip, fit

Choice = tuple[str, str]
"""A name, and a few words about it."""
_NAME = 40  # cells of a name at most: those of files can be long


def matching(choices: list[Choice], typed: str) -> list[Choice]:
    """The choices with every typed word, the nearest name first; else those whose name has its letters in order."""
    typed = typed.lower().strip()
    matches = [choice for choice in choices if all(word in " ".join(choice).lower() for word in typed.split())]
    if matches:
        return sorted(matches, key=lambda choice: _distance(choice[0].lower(), typed))
    letters = re.compile(".*".join(map(re.escape, typed.replace(" ", ""))), re.IGNORECASE)
    return [choice for choice in choices if letters.search(choice[0])]


def _distance(name: str, typed: str) -> int:
    """0 for the name itself, then names that begin with it (or whose last part does), that contain it, and others."""
    return (name != typed) + (not name.rpartition("/")[2].startswith(typed)) + (typed not in name)


class Choices(ItemList[Choice], can_focus=False):
    """One choice a row, the present one marked, and dim what cannot be had. The keys come from the line above."""

    LOOKS: ClassVar[dict[str, str]] = Lines.LOOKS | {
        "cursor": Lines.LOOKS["cursor:focus"],
        "cursor:ansi": Lines.LOOKS["cursor:ansi:focus"],
    }

    def __init__(self, choices: list[Choice], current: str, broken: Container[str]) -> None:
        super().__init__()
        self._all = self.items = choices
        self.empty = "nothing here is called that: backspace shows more"
        self._current = current
        self._broken = broken
        self._width = min(_NAME, max(len(name) for name, _ in choices))
        self.filter("")

    def filter(self, typed: str) -> None:
        """Show what matches, with the cursor on the first; on the present choice while nothing is typed."""
        self.items = matching(self._all, typed)
        names = [name for name, _ in self.items]
        self.cursor = names.index(self._current) if not typed and self._current in names else 0
        if self.is_mounted:
            self.rows_changed()

    def draw(self, item: Choice, width: int) -> StyledRow:
        name, words = item
        mark = "*" if name == self._current else " "
        return [
            (f" {mark} ", "accent"),
            (fit(name, self._width), "dim" if name in self._broken else "strong"),
            (f"   {clip(words, width - self._width - 6)}", "dim"),
        ]


class FilteredScreen(Covering[Answer], Generic[Answer]):
    """A list in a box over the screen, with a line above it; typing filters the list, and the arrows move in it."""

    DEFAULT_CSS = """
    FilteredScreen { align: center middle; background: $background 60%; }
    FilteredScreen > Vertical { border: round $border; background: $surface; padding: 0 1; }
    FilteredScreen Input { dock: top; border: none; height: 1; padding: 0 1; background: $panel; }
    FilteredScreen ItemList { background: $surface; }
    """
    PLACEHOLDER: ClassVar[str] = "filter"
    PAGE: ClassVar[int] = 10
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close", show=False),
        Binding("down", "move(1)", "down", show=False),
        Binding("up", "move(-1)", "up", show=False),
        Binding("pagedown", "page(1)", "a page down", show=False),
        Binding("pageup", "page(-1)", "a page up", show=False),
    ]

    def __init__(self, lines: ItemList[Any], title: str, hints: str) -> None:
        super().__init__()
        self._lines, self._title, self._hints = lines, title, hints

    def filter(self, typed: str) -> None:
        """List only what matches."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        box = Vertical()
        box.border_title, box.border_subtitle = Content(self._title), self._hints
        with box:
            line = Input(placeholder=self.PLACEHOLDER, compact=True)
            line.cursor_blink = False
            yield line
            yield self._lines

    def take(self) -> None:
        """Do what enter does: take the row that the cursor is on."""
        raise NotImplementedError

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.take()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        event.stop()
        self.take()

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.filter(event.value)

    def action_move(self, step: int) -> None:
        self._lines.go(self._lines.cursor + step)

    def action_page(self, side: int) -> None:
        self.action_move(side * self.PAGE)


class Picker(FilteredScreen[str | None]):
    """Returns the chosen name, or None. `choices` are names, each with a few words; `broken` are names that are dim."""

    DEFAULT_CSS = """
    Picker > Vertical { width: 84; max-width: 90%; height: auto; max-height: 80%; }
    Picker Choices { height: auto; max-height: 100%; }
    """

    def __init__(self, title: str, choices: list[Choice], current: str, broken: Container[str] = ()) -> None:
        self._choices = Choices(choices, current, broken)
        super().__init__(self._choices, title, "type to filter, enter takes it, esc leaves it as it is")
        self._choices.styles.height = len(choices)

    def filter(self, typed: str) -> None:
        self._choices.filter(typed)

    def take(self) -> None:
        if self._choices.chosen is not None:
            self.dismiss(self._choices.chosen[0])
