"""Sort the rows of a table by the column that the user chooses."""

from dataclasses import replace

from idbg.views.tree import Direction, Table, usual_direction
from idbg_tui.widgets.picker import Choice, Picker
from idbg_tui.widgets.section_rows import Look, table_key

AS_IT_IS = "as it was"
_WORDS: dict[Direction, str] = {"up": "ascending", "down": "descending"}
_OTHER: dict[Direction, Direction] = {"up": "down", "down": "up"}


def picker(table: Table, look: Look) -> Picker:
    """The columns by which a table can be sorted, the cursor on the one by which it is."""
    by, direction = look.sorts.get(table_key(table), (AS_IT_IS, ""))
    names = dict.fromkeys((table.noun, *(column.head for column in table.columns if column.head)))
    choices: list[Choice] = [(AS_IT_IS, "in the order of the report")]
    choices += [(name, _WORDS[_OTHER[direction] if name == by else usual_direction(table, name)]) for name in names]
    return Picker("Sort by", choices, by)


def sorted_by(look: Look, table: Table, name: str) -> tuple[Look, str]:
    """The look with the table sorted by a column, by the one that it is sorted by already the other way round; and the
    words that say so.
    """
    key = table_key(table)
    others = {other: how for other, how in look.sorts.items() if other != key}
    if name == AS_IT_IS:
        return replace(look, sorts=others), "sorted as it was"
    by, direction = look.sorts.get(key, ("", ""))
    direction = _OTHER[direction] if name == by else usual_direction(table, name)
    return replace(look, sorts={**others, key: (name, direction)}), f"sorted by {name}, {_WORDS[direction]}"
