"""Keys of every list of sections: fold what is under a row, and sort the rows of a table."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg.views.tree import Table
from idbg_tui.widgets import sorting
from idbg_tui.widgets.notices import Flash
from idbg_tui.widgets.search import Searching
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, place_of


class SectionKeys(Searching):
    """Contains a list of sections; a subclass says how the user looks at it, and lists it for another look."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "close", "fold, go outside", show=False),
        Binding("l,right", "unfold", "unfold", show=False),
        Binding("f", "fold_all", "fold or unfold all", show=False),
        Binding("s", "sort", "sort the table by a column", show=False),
        Binding("backslash", "wrap", "show texts whole that are cut, or cut them", show=False),
    ]
    lines: SectionLines

    @property
    def look(self) -> Look:
        """How the user looks at what is shown."""
        raise NotImplementedError

    def relist(self, look: Look, words: str = "") -> None:
        """List the rows again for another look, and flash the `words`."""
        raise NotImplementedError

    def action_sort(self) -> None:
        """Choose the column by which the rows of the cursor's table are sorted, else of the nearest above or below."""
        items, cursor = self.lines.items, self.lines.cursor
        nearest = (*range(min(cursor, len(items) - 1), -1, -1), *range(cursor + 1, len(items)))
        table = next((row.table for at in nearest if (row := items[at]).table is not None), None)
        if table is None:
            self.post_message(Flash("no table is here whose rows could be sorted"))
        else:
            self.app.push_screen(sorting.picker(table, self.look), partial(self._sort, table))

    def action_wrap(self) -> None:
        """Show below each row that is cut all of its words; or no longer."""
        look = replace(self.look, wraps=not self.look.wraps)
        self.relist(look, "what is cut stands whole below it" if look.wraps else "long rows are cut")

    def on_section_lines_head_clicked(self, event: SectionLines.HeadClicked) -> None:
        event.stop()
        self._sort(event.table, event.name)

    def _sort(self, table: Table, name: str | None) -> None:
        if name is not None:
            look, words = sorting.sorted_by(self.look, table, name)
            self.relist(look, words)

    def action_fold(self) -> None:
        """Fold or unfold what is under the row; on a row that is under one, that."""
        row = self.lines.chosen
        if row is not None and (row.fold is not None or row.inside):
            self._turn(row.fold if row.fold is not None else row.inside[-1])

    def action_close(self) -> None:
        row = self.lines.chosen
        if row is not None and row.fold is not None and row.is_open:
            self._turn(row.fold)
        elif row is not None and row.inside:
            self._go_to_fold(row.inside[-1])

    def action_unfold(self) -> None:
        row = self.lines.chosen
        if row is not None and row.fold is not None and not row.is_open:
            self._turn(row.fold)

    def action_fold_all(self) -> None:
        """Fold everything that is open; where nothing is, unfold all."""
        folding = [row for row in self.lines.items if row.fold is not None]
        turning = [row.fold for row in folding if row.is_open] or [row.fold for row in folding]
        self.relist(replace(self.look, turned=self.look.turned ^ frozenset(turning)))

    def _turn(self, fold: Hashable) -> None:
        self.relist(replace(self.look, turned=self.look.turned ^ {fold}))
        self._go_to_fold(fold)

    def _go_to_fold(self, fold: Hashable) -> None:
        if (row := place_of(self.lines.items, fold)) is not None:
            self.lines.place_cursor(row)
