"""How is a text found in a list of rows, and how is it marked there?"""

import re
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from idbg.format.amounts import counted
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg_tui.widgets.lines import Lines, StyledRow, cut


class FindableLines(Lines):
    """Rows with `/`, n and N; a subclass gives `searched`, and passes its rows through `lit`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", show=False),
        Binding("n", "find_next(1)", show=False),
        Binding("N", "find_next(-1)", show=False),
        Binding("escape", "forget", show=False),
    ]

    class SearchAsked(Message):
        pass

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._needle: re.Pattern[str] | None = None

    def searched(self, index: int) -> str:
        """The text in which to look for row `index`."""
        raise NotImplementedError

    def find(self, text: str, start: int) -> int:
        """Mark `text` (case counts only where it has capitals), go to the first row at or below `start` that has it,
        or back to `start` if none has; the number of rows that do."""
        self._needle = pattern(text)
        hits = [index for index in range(self.row_count) if self._hit(index)]
        self.place_cursor(next((hit for hit in hits if hit >= start), hits[0] if hits else start))
        self.repaint_changes()
        return len(hits)

    def lit(self, row: StyledRow) -> StyledRow:
        """The row with what is looked for marked in it."""
        return [part for text, style in row for part in self._split(text, style)] if self._needle else row

    def _split(self, text: str, style: str) -> StyledRow:
        parts, column = [], 0
        for found in self._needle.finditer(text) if self._needle else ():
            parts += [(text[column : found.start()], style), (found[0], "match")]
            column = found.end()
        return [*parts, (text[column:], style)]

    def _hit(self, index: int) -> bool:
        return self._needle is not None and self._needle.search(self.searched(index)) is not None

    def action_search(self) -> None:
        self.post_message(self.SearchAsked())

    def action_find_next(self, side: int) -> None:
        count = self.row_count
        places = ((self.cursor + side * step) % count for step in range(1, count + 1))
        hit = next((index for index in places if self._hit(index)), None)
        if hit is not None:
            self.go(hit)

    def action_forget(self) -> None:
        self._needle = None
        self.repaint_changes()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """n and escape mean something here only while there is a search to go on with or to end."""
        return self._needle is not None if action in ("find_next", "forget") else True


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


def told(text: str, count: int) -> str:
    """What to say of a search that was entered."""
    shown = cut(text, 40)
    if not count:
        return f"nothing here has {shown}"
    return f"{counted(count, 'line')} with {shown}: n and N go through them"
