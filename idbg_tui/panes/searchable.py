"""Base panes: one list that can be searched, and sections of rows that fold."""

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from idbg_tui.panes.base import Pane
from idbg_tui.widgets.search import Searching
from idbg_tui.widgets.section_list import SectionLines
from idbg_tui.widgets.section_rows import Look, place_of


class SearchablePane(Pane, Searching):
    """A pane of one list, with a line to search it under that."""

    DEFAULT_CSS = """
    SearchablePane { layout: vertical; }
    SearchablePane > ItemList { height: 1fr; }
    """


class FoldingPane(SearchablePane):
    """A pane of sections; `look` is how the user looks at them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "close", show=False),
        Binding("l,right", "unfold", show=False),
        Binding("f", "fold_all", show=False),
    ]

    @property
    def sections(self) -> SectionLines:
        """The list that shows the sections."""
        raise NotImplementedError

    @property
    def look(self) -> Look:
        raise NotImplementedError

    def relist(self, look: Look, words: str = "") -> None:
        """List the rows again for another look, and flash the `words`."""
        raise NotImplementedError

    def action_fold(self) -> None:
        """Fold or unfold what is under the row; on a row that is under one, that."""
        row = self.sections.chosen
        if row is not None and (row.fold is not None or row.inside):
            self._turn(row.fold if row.fold is not None else row.inside[-1])

    def action_close(self) -> None:
        row = self.sections.chosen
        if row is not None and row.fold is not None and row.is_open:
            self._turn(row.fold)
        elif row is not None and row.inside:
            self._go_to_fold(row.inside[-1])

    def action_unfold(self) -> None:
        row = self.sections.chosen
        if row is not None and row.fold is not None and not row.is_open:
            self._turn(row.fold)

    def action_fold_all(self) -> None:
        """Fold everything that is open; where nothing is, unfold all."""
        folding = [row for row in self.sections.items if row.fold is not None]
        turning = [row.fold for row in folding if row.is_open] or [row.fold for row in folding]
        self.relist(replace(self.look, turned=self.look.turned ^ frozenset(turning)))

    def _turn(self, fold: Hashable) -> None:
        self.relist(replace(self.look, turned=self.look.turned ^ {fold}))
        self._go_to_fold(fold)

    def _go_to_fold(self, fold: Hashable) -> None:
        if (row := place_of(self.sections.items, fold)) is not None:
            self.sections.place_cursor(row)
