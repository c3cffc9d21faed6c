"""How wide is each column of a comparison's list, and how is a long name told there?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from idbg_tui.widgets.cutting import distinct
from idbg_tui.widgets.lines import fit

FIGURE = 9  # cells of one figure
_SIGNS, _GAP = 3, 2  # cells of the sign before a name, and of the blanks before the end
_ENDS = 40  # cells that the end may ask for
_HEAD = 6  # cells of the longest word over the names
_LEAST = 12  # cells of a name, however much the rest wants
_MIDDLE = 16  # cells that the middle wants, and
_NAMES = 24  # as many the names, before the middle gets any


@dataclass(frozen=True)
class DiffColumns:
    """A name, a middle (a shape, a node), those of three figures that `figures` counts, and an end (a place).

    `alone`: of launches, the first figure is the error that each makes by itself.
    """

    width: int
    name: int
    middle: int
    figures: Sequence[int]
    names: Mapping[str, str]
    alone: bool = False

    @classmethod
    def of(
        cls, names: Sequence[str], middles: Iterable[str], ends: Iterable[str], width: int, figures: Sequence[int]
    ) -> "DiffColumns":
        """Figures are never cut; then come the ends, then the names, then the middles."""
        end = min(max(map(len, ends), default=0), _ENDS)
        left = width - _SIGNS - 1 - len(figures) * (FIGURE + 1) - _GAP - end
        name = min(max([_HEAD, *map(len, names)]), max(left - _MIDDLE, min(left, _NAMES), _LEAST))
        wanted = max(map(len, middles), default=0)
        middle = min(wanted + 1, left - name) if wanted and left - name > min(wanted, _MIDDLE // 2) else 0
        return cls(width, name, middle, figures, distinct(names, name))

    def named(self, name: str) -> str:
        """A name in its column."""
        return fit(self.names.get(name, name), self.name)

    def figured(self, words: Sequence[str]) -> str:
        """Those of the three figures, or of the words over them, that are shown."""
        return "".join(f"{words[at]:>{FIGURE + 1}}" for at in self.figures)
