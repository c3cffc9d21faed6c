"""Draw a section as lines of text, for a terminal or a file."""

from collections.abc import Iterator

from idbg.format.file_names import near_place
from idbg.format.tables import cells as width_of
from idbg.render.cells import GAP, Layout, is_number, layout, texts
from idbg.views.tree import Item, Place, Row, Section, Table, items

MOST = 50  # rows of one list: the JSON report has all
_WORDS = 72  # cells that words take before cells follow them ragged
_INDENT = 2


def lines(section: Section, most: int | None = MOST) -> Iterator[str]:
    """The summary; then each row that is unfolded at first, and below it its code."""
    found = list(items(section, lambda row: bool(row.open), most))
    layouts: dict[int, Layout] = {}
    if not (found and found[0].row is None):
        yield section.summary
    for number, item in enumerate(found):
        if item.row is None:
            assert item.table is not None
            layouts[id(item.table)] = _layout(item.table, found, section.summary if number == 0 else "")
            yield from _heads(item.table, layouts[id(item.table)], section.summary if number == 0 else "")
        else:
            first, *rest = _line(item, item.row, layouts.get(id(item.table))).splitlines() or [""]
            yield first
            indent = " " * _INDENT * (item.depth + 2)
            yield from (f"{indent}{line}".rstrip() for line in rest)
            yield from (f"{indent}{line}" for line in item.row.code.splitlines())


def text(section: Section, most: int | None = MOST) -> str:
    """The same as one text, without an end of line after the last."""
    return "\n".join(lines(section, most))


def _layout(table: Table, found: list[Item], summary: str) -> Layout:
    mine = [item for item in found if item.table is table and item.row is not None and item.row.cells]
    widths = [_INDENT * item.depth + width_of(_words(item.row)) for item in mine if item.row is not None]
    widest = min(max([*widths, len(summary)], default=0), _WORDS)
    columns = layout(table, mine, 10_000, 0, _place)
    return Layout(columns.shown, columns.widths, widest)


def _heads(table: Table, shown: Layout, summary: str) -> Iterator[str]:
    if len(summary) > shown.words:
        yield summary
        summary = ""
    if table.columns:
        yield _joined(summary, [table.columns[at].head for at in shown.shown], table, shown)
    elif summary:
        yield summary


def _line(item: Item, row: Row, shown: Layout | None) -> str:
    words = " " * _INDENT * item.depth + _words(row)
    if shown is None or item.table is None or not row.cells:
        return words.rstrip()
    return _joined(words, texts(row.cells, item.table, shown.shown, _place), item.table, shown)


def _joined(words: str, cells: list[str], table: Table, shown: Layout) -> str:
    parts = [words + " " * (shown.words - width_of(words))]
    for at, cell in zip(shown.shown, cells, strict=True):
        space = " " * (shown.widths[at] - width_of(cell))
        parts.append(space + cell if is_number(table.columns[at].kind) else cell + space)
    return (" " * GAP).join(parts).rstrip()


def _words(row: Row) -> str:
    return "".join(_place(part) if isinstance(part, Place) else part.text for part in row.words)


def _place(place: Place) -> str:
    return near_place(place.file, place.line)
