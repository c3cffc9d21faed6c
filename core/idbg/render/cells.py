"""Write the cells of a table: units, alignment and widths, the same for every painter."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from idbg.format.amounts import NOTHING, column_figure, column_share, column_size, evaluation, moment, seconds
from idbg.format.glyphs import LEVELS, MARKS
from idbg.format.tables import cells as width_of
from idbg.format.tables import clip, cut
from idbg.views.tree import Cell, Column, Item, Kind, Place, Table, Value

GAP = 2
"""Cells of the terminal between two columns."""
Written = Callable[[Place], str]
"""How a painter writes a line of the user's."""

_MOST_MEASURED = 1000  # rows of which a column's width is known; a longer text further down is cut
_BAR = 14


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


_WRITTEN: dict[Kind, Callable[[float], str]] = {
    "seconds": seconds,
    "evaluation": evaluation,
    "bytes": lambda value: column_size(int(value)),
    "count": _number,
    "share": column_share,
    "ratio": lambda value: f"{value:.2f}x",
    "error": column_figure,
    "moment": moment,
    "bar": lambda value: LEVELS[-1] * max(round(value * _BAR), 1),
}
_WIDTHS: dict[Kind, int] = {
    "seconds": 8,
    "evaluation": 11,
    "bytes": 10,
    "share": 7,
    "ratio": 8,
    "error": 9,
    "moment": 16,
    "bar": _BAR,
}
NAMES = 40
"""Cells of names, where nothing limits them."""
_WIDEST: dict[Kind, int] = {"place": 32, "text": 40, "sentence": 40, "names": NAMES, "code": 40, "count": 12}


def is_number(kind: Kind) -> bool:
    """Whether its values stand below one another at their right ends."""
    return kind in ("seconds", "evaluation", "bytes", "count", "share", "ratio", "error")


def written(value: Value, kind: Kind, place: Written) -> str:
    """A cell's text: "-" for a value that is not known."""
    if value is None:
        return NOTHING
    if isinstance(value, Place):
        return place(value)
    return value if isinstance(value, str) else _WRITTEN[kind](value)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are shown, how wide each is, and how many cells are left for the words."""

    shown: tuple[int, ...]
    widths: tuple[int, ...]
    words: int


def layout(table: Table, items: Iterable[Item], width: int | None, least: int, place: Written) -> Layout:
    """The columns within `width` cells, of which the words have `least` at least; None: as wide as they are."""
    widths = [_width(at, column, table, items, place, width) for at, column in enumerate(table.columns)]
    if width is None:
        return Layout(tuple(range(len(widths))), tuple(widths), least)
    shown = list(range(len(widths)))

    def left() -> int:
        return width - sum(widths[at] + GAP for at in shown)

    def elastic() -> int:
        """By how much sentences can be cut."""
        return sum(widths[at] - table.columns[at].least for at in shown if table.columns[at].kind == "sentence")

    while left() + elastic() < least and (spare := [at for at in reversed(shown) if not table.columns[at].least]):
        shown.remove(min(spare, key=lambda at: table.columns[at].rank))
    while left() < least and (able := [at for at in shown if widths[at] > table.columns[at].least > 0]):
        widths[max(able, key=lambda at: widths[at])] -= 1
    return Layout(tuple(shown), tuple(widths), left())


def _width(at: int, column: Column, table: Table, items: Iterable[Item], place: Written, room: int | None) -> int:
    if (known := _WIDTHS.get(column.kind)) is not None:
        return max(known, len(column.head))
    widest = len(column.head)
    for number, item in enumerate(items):
        if number > _MOST_MEASURED:
            break
        if item.table is table and item.row is not None and at < len(item.row.cells):
            widest = max(widest, width_of(written(item.row.cells[at].value, column.kind, place)))
    may_be_wide = (room is None and column.kind != "names") or (room is not None and column.least)
    return widest if may_be_wide else min(widest, _WIDEST[column.kind])


def first_names(text: str, width: int) -> str:
    """As many of the names, parted by commas, as `width` cells hold; a first one too long is cut in its middle."""
    if width_of(text) <= width:
        return text
    shown, *others = text.split(", ")
    more = f", {MARKS['ellipsis']}"
    for name in others:
        if width_of(f"{shown}, {name}{more}") > width:
            break
        shown += f", {name}"
    return shown + more if width_of(shown + more) <= width else cut(shown, width)


def shortened(text: str, kind: Kind, width: int) -> str:
    """A cell's text in at most `width` cells, as suits its kind."""
    return {"names": first_names, "sentence": clip}.get(kind, cut)(text, width)


def texts(cells: Sequence[Cell], table: Table, shown: Iterable[int], place: Written) -> list[str]:
    """The texts of the shown columns of a row; "" where it has no cell."""
    return [written(cells[at].value, table.columns[at].kind, place) if at < len(cells) else "" for at in shown]
