"""What the user chose of the graph's appearance: its columns, and by what nodes are coloured."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from idbg.format.glyphs import MARKS
from idbg_tui.panes.graph.colours import ABOUT, ColourBy
from idbg_tui.panes.graph.columns import CHOICES

if TYPE_CHECKING:
    from idbg_tui.widgets.picker import Picker

_COLOUR = "colour by "


class Appearance(Struct, frozen=True, omit_defaults=True):
    """Names of columns that are left out, and by what nodes are coloured."""

    hidden: frozenset[str] = frozenset()
    colour: ColourBy = ""

    def turned(self, column: str) -> "Appearance":
        """The same with a column that was left out, or without one that was there."""
        return replace(self, hidden=self.hidden ^ {column})

    def chosen(self, name: str) -> "Appearance":
        """The same after one choice in the picker."""
        for by in ABOUT:
            if name == _name(by):
                return replace(self, colour=by)
        return self.turned(name)


def picker(appearance: Appearance, last: str) -> "Picker":
    """Every column, and everything by which nodes can be coloured; the cursor is on the `last` choice."""
    from idbg_tui.widgets.picker import Picker  # the first paint waits for nothing that it does not show

    columns = [(name, f"{_sign(name not in appearance.hidden)} {words}") for name, words in CHOICES.items()]
    colours = [(_name(by), f"{_sign(by == appearance.colour)} {words}") for by, words in ABOUT.items()]
    return Picker(f"Columns and colour ({MARKS['on']}); enter changes one", columns + colours, last)


def _name(by: ColourBy) -> str:
    return _COLOUR + (by or "nothing")


def _sign(is_on: bool) -> str:
    return MARKS["on" if is_on else "off"]
