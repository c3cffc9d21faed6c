"""How do rows of a view stand in columns: words that take what room there is, then cells that stay whole?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from idbg_tui.widgets.lines import StyledRow, fit
from idbg_tui.widgets.section_rows import Row, clipped

_LEAD = 34  # cells that the words have at least, before a column gives way
_GAP = 2


@dataclass(frozen=True)
class Column:
    """One column after the words. Where there is little room the columns with the lowest `rank` are left out; numbers
    stand on the `right`.
    """

    head: str
    width: int
    rank: int = 1
    right: bool = False


@dataclass(frozen=True)
class Table:
    """Columns that all rows of a view share."""

    columns: tuple[Column, ...]
    lead: str = ""
    """What stands above the words."""

    def heads(self) -> Row:
        """The row that names the columns."""
        cells = [column.head for column in self.columns]
        return Row(None, self.row([(f" {self.lead}", "dim")], [(cell, "dim") for cell in cells]), head=True)

    def row(self, words: StyledRow, cells: Sequence[tuple[str, str]]) -> Callable[[int], StyledRow]:
        """Draws the words, cut at their end, and the cells, one a column, with the look of each."""

        def draw(width: int) -> StyledRow:
            shown = self._shown(width)
            room = width - sum(self.columns[place].width + _GAP for place in shown)
            lead = clipped(words, room)
            gap = room - sum(cell_len(text) for text, _ in lead)
            drawn = [*lead, (" " * gap, "")]
            for place in shown:
                column, (text, style) = self.columns[place], cells[place]
                text = fit(text, column.width) if not column.right else f"{text:>{column.width}}"
                drawn.append((" " * _GAP + text, style))
            return drawn

        return draw

    def _shown(self, width: int) -> list[int]:
        """The columns that have room."""
        shown = list(range(len(self.columns)))
        while shown and width - sum(self.columns[place].width + _GAP for place in shown) < _LEAD:
            shown.remove(min(reversed(shown), key=lambda place: self.columns[place].rank))
        return shown
