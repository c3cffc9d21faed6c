"""Search rows for a text: the finder, the line to type in, and the keys."""

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Protocol

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from idbg.format.amounts import counted
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg_tui.widgets.lines import cut
from idbg_tui.widgets.notices import Flash

SEARCH_KEYS: list[BindingType] = [
    Binding("slash", "search", "find a text", show=False),
    Binding("n", "find_next(1)", "the next match", show=False),
    Binding("N", "find_next(-1)", "the match before", show=False),
    Binding("escape", "forget", "end the search", show=False),
]
"""Of every widget that can be searched."""


class Searched(Protocol):
    """A widget of rows in which a text is looked for; a `place` is a row, as the widget counts them."""

    @property
    def place(self) -> int:
        """The cursor's row."""

    def find(self, text: str, start: int) -> int:
        """Mark `text`, and put the cursor on the first row at or below `start` that has it, or back on `start` if
        none has; the number of rows that do. "" ends the search."""

    def focus(self) -> object:
        """Take the keys again."""


@dataclass
class SearchRequest(Message):
    """The user wants to look for a text in this widget."""

    searched: Searched


class Finder:
    """What is looked for now, if anything, in rows that have a text each."""

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def look_for(self, text: str, rows: int, start: int) -> tuple[int, int]:
        """How many of the rows have `text`, and the first at or below `start`, or at all; `start` where none has."""
        self._pattern = pattern(text)
        hits = [row for row in range(rows) if self._hits(row)]
        return len(hits), next((row for row in hits if row >= start), hits[0] if hits else start)

    def next_row(self, row: int, side: int, rows: int) -> int | None:
        """The next row that has the text, down (`side` 1) or up (-1) from `row`, round the ends; None if none has."""
        others = ((row + side * step) % rows for step in range(1, rows + 1))
        return next((other for other in others if self._hits(other)), None)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Its matches in a text: from and to (exclusive)."""
        return [match.span() for match in self._pattern.finditer(text)] if self._pattern else []

    def forget(self) -> None:
        """Look for nothing."""
        self._pattern = None

    def _hits(self, row: int) -> bool:
        return self._pattern is not None and self._pattern.search(self._text_of(row)) is not None


def pattern(text: str) -> re.Pattern[str] | None:
    """What finds `text`: case counts only where it has capitals.

    As in the graph's filter, `k:5` finds kernel 5, `op:conv` an op and `!reject` what breaks such a rule, by its sign.
    """
    flags = re.NOFLAG if any(map(str.isupper, text)) else re.IGNORECASE
    return re.compile(_meant(text), flags) if text else None


def _meant(text: str) -> str:
    if kernel := re.fullmatch(r"k:k?(\d+)", text):
        return rf"\bk{kernel[1]}\b|(?<=_){kernel[1]}\b"
    for prefix in ("k:", "op:"):
        if text.startswith(prefix) and len(text) > len(prefix):
            return re.escape(text.removeprefix(prefix))
    if text[0] == "!" and len(text) > 1 and text[1:].isalpha():
        signs = [re.escape(sign) for name, sign in SEVERITY_SIGNS.items() if name.startswith(text[1:].lower())]
        return "|".join([*signs, re.escape(text[1:])])
    return re.escape(text)


class SearchLine(Input):
    """A line to type in, under what is searched. Posts `Sought` at each key, `done` with enter; escape gives up and
    takes the search back."""

    DEFAULT_CSS = """
    SearchLine { height: 1; border: none; padding: 0 1; background: $surface; display: none; }
    SearchLine.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "end the search", show=False)]

    @dataclass
    class Sought(Message):
        """The line's text; `done`: it was entered, or the search was cancelled ("")."""

        text: str
        _: KW_ONLY
        done: bool = False

    def __init__(self) -> None:
        super().__init__(placeholder="search", compact=True, select_on_focus=True)
        self.cursor_blink = False

    @classmethod
    def open_in(cls, holder: Widget) -> None:
        """Open the holder's line, which is created on first use."""
        line = next(iter(holder.query(cls)), None)
        if line is None:
            line = cls()
            holder.mount(line)
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


class Searching(Widget):
    """Contains widgets that can be searched: opens a line under one on request, and searches for what is typed.

    Name it as the last base: Textual styles a widget as its first bases only.
    """

    _searched: Searched | None = None
    _sought_from = 0

    @property
    def search_room(self) -> Widget:
        """The container of the line to type in."""
        return self

    def seek(self, searched: Searched, text: str, *, done: bool) -> None:
        """Look for what is typed; once it is entered (`done`), flash how many rows have it."""
        count = searched.find(text, self._sought_from)
        if done and text:
            self.post_message(Flash(_outcome(text, count)))

    def on_search_request(self, event: SearchRequest) -> None:
        event.stop()
        self._searched, self._sought_from = event.searched, event.searched.place
        SearchLine.open_in(self.search_room)

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        event.stop()
        if self._searched is None:
            return
        self.seek(self._searched, event.text, done=event.done)
        if event.done:
            self._searched.focus()


def _outcome(text: str, count: int) -> str:
    """The sentence for a search that was entered."""
    shown = cut(text, 40)
    return f"{counted(count, 'line')} with {shown}: n and N go through them" if count else f"nothing here has {shown}"
