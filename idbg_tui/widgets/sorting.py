"""Sort rows by the column that the user chooses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from idbg.views.tree import UNSORTED, Direction, Order, Table, usual_direction
from idbg_tui.widgets.section_rows import Look, table_key

if TYPE_CHECKING:
    from idbg_tui.widgets.picker import Picker

AS_IT_IS = "as it was"
_WORDS: dict[Direction, str] = {"up": "ascending", "down": "descending"}
_OTHER: dict[Direction, Direction] = {"up": "down", "down": "up"}


def picker(table: Table, look: Look) -> "Picker":
    """The columns by which a table can be sorted, the cursor on the one by which it is."""
    names = dict.fromkeys((table.noun, *(column.head for column in table.columns if column.head)))
    usual = {name: usual_direction(table, name) for name in names}
    return picker_of(usual, look.sorts.get(table_key(table), UNSORTED), "in the order of the report")


def picker_of(usual: Mapping[str, Direction], order: Order, came: str) -> "Picker":
    """Columns to sort by, each with its usual direction; `came` describes the order in which the rows came."""
    from idbg_tui.widgets.picker import Picker  # the first paint waits for nothing that it does not show

    turned = {name: turned_to(name, order, direction) for name, direction in usual.items()}
    choices = [(name, _WORDS.get(direction, AS_IT_IS)) for name, (_, direction) in turned.items()]
    return Picker("Sort by", [(AS_IT_IS, came), *choices], order[0] or AS_IT_IS)


def turned_to(name: str, order: Order, usual: Direction) -> Order:
    """The order after a column was chosen: in its usual direction, then the other way round, then as the rows came."""
    by, direction = order
    if name == AS_IT_IS or (name == by and direction != usual):
        return UNSORTED
    return name, _OTHER[usual] if name == by else usual


def words(order: Order) -> str:
    """How the rows are sorted."""
    by, direction = order
    return f"sorted by {by}, {_WORDS[direction]}" if by else "sorted as it was"


def sorted_by(look: Look, table: Table, name: str) -> tuple[Look, str]:
    """The look with the table sorted by a column that was chosen (see `turned_to`), and the words for it."""
    key = table_key(table)
    order = turned_to(name, look.sorts.get(key, UNSORTED), usual_direction(table, name))
    others = {other: how for other, how in look.sorts.items() if other != key}
    return replace(look, sorts={**others, key: order} if order[0] else others), words(order)
