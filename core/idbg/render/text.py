"""Draw a section as lines of text, for a terminal or a file."""

from collections.abc import Iterator
from dataclasses import replace

from idbg.format.file_names import near_place
from idbg.format.tables import cells as width_of
from idbg.format.tables import clip, cut
from idbg.render.cells import GAP, Layout, is_number, layout, shortened, texts
from idbg.views.tree import Item, Place, Row, Section, Sides, Table, items

MOST = 50  # rows of one list: the JSON report has all
_WORDS = 72  # cells that words take before cells follow them ragged
_LEAST = 32  # cells of the words before columns give way
_INDENT = 2


def lines(section: Section, most: int | None = MOST, width: int | None = None, sides: int = 0) -> Iterator[str]:
    """The summary; then each row that is unfolded at first, and below it its code, and its sides in columns of so many
    cells (0: not at all). Tables are `width` cells wide at most; None: as wide as they are.
    """
    every = items(section, lambda row: row.open in ("text", "all"), most)
    found = [item for item in every if item.row is None or item.row.open != "label"]
    layouts: dict[int, Layout] = {}
    if not (found and found[0].table is not None and not found[0].table.title) and section.summary:
        yield section.summary
    for number, item in enumerate(found):
        if item.row is None:
            assert item.table is not None
            lead = section.summary if number == 0 and not item.table.title else ""
            layouts[id(item.table)] = _layout(item.table, found, lead, width)
            if item.table.title:
                yield from ("", item.table.title)
            yield from _heads(item.table, layouts[id(item.table)], lead)
        elif item.row.words or item.row.cells or item.row.code:
            first, *rest = _line(item, item.row, layouts.get(id(item.table)), width).splitlines() or [""]
            yield first
            indent = " " * _INDENT * (item.depth + 2)
            yield from (f"{indent}{line}".rstrip() for line in rest)
            yield from (f"{indent}{line}" for line in item.row.code.splitlines())
            if sides and item.row.sides is not None:
                yield from _sides(item.row.sides, sides)


def text(section: Section, most: int | None = MOST, width: int | None = None) -> str:
    """The same as one text, without an end of line after the last."""
    return "\n".join(lines(section, most, width))


def _sides(sides: Sides, width: int) -> Iterator[str]:
    for line in sides.lines:
        if line is None:
            yield "  ..."
        else:
            mark = " " if line.same else "|"
            yield f"  {line.left_text[:width]:{width}} {mark} {line.right_text[:width]}".rstrip()


def _layout(table: Table, found: list[Item], summary: str, width: int | None) -> Layout:
    mine = [item for item in found if item.table is table and item.row is not None and item.row.cells]
    widths = [_INDENT * item.depth + width_of(_words(item.row)) for item in mine if item.row is not None]
    least = max([*widths, width_of(table.noun)], default=0)
    if width is None:
        return layout(table, mine, None, min(max(least, len(summary)), _WORDS), _place)
    columns = layout(table, mine, width, min(least, table.least or _LEAST), _place)
    return replace(columns, words=min(max(least, len(summary)), columns.words))


def _heads(table: Table, shown: Layout, summary: str) -> Iterator[str]:
    if len(summary) > shown.words:
        yield summary
        summary = ""
    if table.columns:
        yield _joined(summary or table.noun, [table.columns[at].head for at in shown.shown], table, shown)
    elif summary:
        yield summary


def _line(item: Item, row: Row, shown: Layout | None, width: int | None) -> str:
    words = " " * _INDENT * item.depth + _words(row)
    if shown is None or item.table is None or not row.cells:
        return words.rstrip()
    cells = texts(row.cells, item.table, shown.shown, _place)
    if width is not None:
        filled = next((at for at, cell in enumerate(cells) if cell), 0)  # words go on over the empty columns before it
        room = shown.words + sum(wide + GAP for wide in (shown.widths[at] for at in shown.shown[:filled]))
        words = clip(words, room) if item.table.least else cut(words, room)
        cells, shown = cells[filled:], Layout(shown.shown[filled:], shown.widths, room)
    return _joined(words, cells, item.table, shown)


def _joined(words: str, cells: list[str], table: Table, shown: Layout) -> str:
    parts = [words + " " * (shown.words - width_of(words))]
    for at, cell in zip(shown.shown, cells, strict=True):
        number, wide = is_number(table.columns[at].kind), shown.widths[at]
        cell = cell if number else shortened(cell, table.columns[at].kind, wide)
        space = " " * (wide - width_of(cell))
        parts.append(space + cell if number else cell + space)
    return (" " * GAP).join(parts).rstrip()


def _words(row: Row) -> str:
    return "".join(_place(part) if isinstance(part, Place) else part.text for part in row.words)


def _place(place: Place) -> str:
    return near_place(place.file, place.line)
