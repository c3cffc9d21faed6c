"""Draw a section as the rows of a list: its words, columns, folds and code for the width there is."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice

from msgspec import structs
from rich.cells import cell_len, chop_cells

from idbg.format import file_names
from idbg.format.glyphs import MARKS, plain
from idbg.render.cells import GAP, Layout, is_number, layout, shortened, texts
from idbg.views import tree
from idbg.views.tree import Item, Place, Section, Table
from idbg_tui.widgets.cutting import distinct
from idbg_tui.widgets.lines import StyledRow, cut, fit
from idbg_tui.widgets.section_rows import INDENT, Look, Row, Rows, clipped, fixed, sign, table_key, text_rows, wrapped

_LEAST = 34
"""Cells of the words before a column gives way."""
_WIDE = 5  # such a part of the row the words may have, where they need it
_MOST_MEASURED = 1000  # rows
_MOST_WRAPPED = 300  # rows of a section; of more, words that have no room beside the cells are cut
_NARROW = 16  # cells that a line of words has at least
_SIGNS = 4  # cells before a name: of the fold and of the row's own sign
_TRY = "  t tries it"


@contextmanager
def collector_paused() -> Iterator[None]:
    """While many rows are made: so many new objects make the collector look through all that there is."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


Charted = Callable[[tree.Chart, Look], Sequence[Row]]
"""Draws a chart as rows."""


def rows(section: Section, look: Look, chart: Charted | None = None) -> Rows:
    """The rows that are listed; the first has the section's summary, over the columns where a table comes first."""
    section = _sorted(section, look)
    found = list(tree.items(section, lambda row: look.is_open(row.key, at_first=row.open in ("screen", "all"))))
    place = partial(_place, look)
    made = Rows()
    layouts: dict[int, Layout] = {}
    aligned: dict[int, int] = {}
    names: dict[int, dict[str, str]] = {}
    leads = bool(found) and found[0].table is not None and not found[0].table.title
    if not leads and section.body and section.summary:
        made.add_all(text_rows(section.summary, look, key="summary"))
    for number, item in enumerate(found):
        if item.table is not None and id(item.table) not in layouts:
            least, aligned[id(item.table)] = _measured(item.table, found, place, look.width)
            layouts[id(item.table)] = layout(item.table, found, look.width, least, place)
            names[id(item.table)] = _distinct_names(item.table, layouts[id(item.table)].words - _SIGNS)
        shown = layouts.get(id(item.table))
        if item.row is None:
            assert item.table is not None and shown is not None
            made.add_all(_titled(item.table.title, look) if item.table.title else ())
            summary = section.summary if number == 0 and leads else ""
            if cell_len(summary) + 1 > shown.words:
                made.add_all(text_rows(summary, look, key="summary"))
                summary = ""
            if item.table.columns or summary:
                made.add(_heads(item.table, shown, summary, look))
        elif item.row.cells and not item.row.code:
            # most rows of a large table are never seen
            shortened = names.get(id(item.table), {})
            at = aligned.get(id(item.table), 0)
            if look.wraps or len(found) <= _MOST_WRAPPED:
                made.add_all(_listed(item, item.row, look, shown, place, shortened, at))
            else:
                made.add_later(item.row.key, partial(_first, item, item.row, look, shown, place, shortened, at))
        elif item.row.words or not item.row.charts:
            made.add_all(_listed(item, item.row, look, shown, place))
        if item.row is not None and chart is not None:
            for each in item.row.charts:
                made.add_all(chart(each, look))
    for block in section.body:
        if isinstance(block, tree.Chart) and chart is not None:
            made.add_all(chart(block, look))
    return made


def searched(row: tree.Row, look: Look) -> str:
    """What a search looks through: the row's words, the texts and places in its cells, and its code."""
    place = partial(_place, look)
    parts = [place(part) if isinstance(part, Place) else part.text for part in row.words]
    for cell in row.cells:
        if cell.value and not isinstance(cell.value, int | float):
            parts += "  ", cell.value if isinstance(cell.value, str) else place(cell.value)
    return "".join((*parts, "\n", row.code)) if row.code else "".join(parts)


def _measured(table: Table, items: Sequence[Item], place: Callable[[Place], str], width: int) -> tuple[int, int]:
    """Cells that its words have at least: as many as they need, where that is less. Cells before the last word of a
    row, where that is aligned.
    """
    if not table.least:
        widest = max(map(cell_len, (table.noun, *(row.text for row in table.rows[:_MOST_MEASURED]))))
        return min(widest + 4, _LEAST), 0
    of_table = ((item.depth, item.row) for item in items if item.table is table and item.row is not None)
    listed = ((depth, _pieces(row, place)) for depth, row in of_table if _is_aligned(row))
    measured = [
        (INDENT * depth + 3, _width(words[:-1]), _width(words[-1:])) for depth, words in islice(listed, _MOST_MEASURED)
    ]
    at = max((before for _, before, _ in measured), default=0)
    most = max(table.least, width // _WIDE)
    return min(max((indent + at + last for indent, _, last in measured), default=0), most), at


def _is_aligned(row: tree.Row) -> bool:
    return bool(row.cells) and bool(row.cells[0].value)


def _width(words: StyledRow) -> int:
    return sum(cell_len(text) for text, _ in words)


def _distinct_names(table: Table, width: int) -> dict[str, str]:
    """The names of a table of names, each in at most `width` cells."""
    if not table.names:
        return {}
    names = [words[at][0] for row in table.rows if (words := _pieces(row, str)) for at in [_name_at(words)]]
    return distinct(names, max(width, 1))


def _name_at(words: StyledRow) -> int:
    """The piece that is a row's name: the first that is more than signs."""
    return next((at for at, (text, _) in enumerate(words) if any(map(str.isalnum, text))), 0)


def _pieces(row: tree.Row, place: Callable[[Place], str]) -> list[tuple[str, str]]:
    return [(place(part), "accent") if isinstance(part, Place) else (plain(part.text), part.tone) for part in row.words]


def _first(
    item: Item,
    row: tree.Row,
    look: Look,
    shown: Layout | None,
    place: Callable[[Place], str],
    names: Mapping[str, str],
    aligned: int,
) -> Row:
    return next(_listed(item, row, look, shown, place, names, aligned))


def _place(look: Look, place: Place) -> str:
    return file_names.place(place.file, place.line, look.files)


def _sorted(section: Section, look: Look) -> Section:
    """The section with its tables in the order that the user chose."""
    if not look.sorts:
        return section
    body = tuple(
        tree.ordered_table(block, *look.sorts[key])
        if isinstance(block, Table) and (key := table_key(block)) in look.sorts
        else block
        for block in section.body
    )
    return structs.replace(section, body=body)


def _titled(title: str, look: Look) -> Iterator[Row]:
    """A table's title: the cursor passes over it as over heads."""
    return (replace(row, head=True) for row in text_rows(title, look, key=None, style="strong"))


def _heads(table: Table, shown: Layout, summary: str, look: Look) -> Row:
    """The columns' names; an arrow stands before the one by which the rows are sorted."""
    by, direction = look.sorts.get(table_key(table), ("", ""))
    arrow = MARKS["up" if direction == "up" else "down"]
    heads = [table.columns[at].head for at in shown.shown]
    cells = [(plain(head), "accent" if head and head == by else "dim") for head in heads]
    lead = summary or f"  {table.noun}"
    words = [(f" {lead}", "dim"), (f" {arrow}{table.noun}" if by == table.noun else "", "accent")]
    last_first = shown.shown[::-1]
    wide = accumulate(shown.widths[at] + GAP for at in last_first)
    ends = tuple(zip(heads[::-1], wide, strict=True))
    drawn = partial(_drawn, words, cells, table, shown, sorted_by=by, arrow=arrow)
    return Row(None, drawn, head=True, table=table, ends=ends)


def _listed(
    item: Item,
    row: tree.Row,
    look: Look,
    shown: Layout | None,
    place: Callable[[Place], str],
    names: Mapping[str, str] = {},
    aligned: int = 0,
) -> Iterator[Row]:
    """The row, on as many lines as its words take where it has no cells; below it its code. Of a row with a first cell
    the last word begins after `aligned` cells.
    """
    words = _pieces(row, place)
    if aligned and _is_aligned(row):
        words.insert(-1, (" " * (aligned - _width(words[:-1])), ""))
    indent = " " * (1 + INDENT * item.depth)
    refers = _refers(row, item)
    if row.cells or row.folds:
        mark = f"{sign(is_open=item.open)} " if row.folds else "  "
        pieces = [(indent[1:] + mark, ""), *words]
        lines = _broken(item, pieces, look.width) if not row.cells else [pieces]
        draw: Callable[[int], StyledRow] = fixed(lines[0])
        if item.table is not None and shown is not None and row.cells:
            cells = _cells(row, item.table, shown, place)
            known = names if row.refs.kernel is not None or item.table.names else None
            if known is None and not _is_of_code(row, item.table):
                lines = _broken(item, pieces, look.width - _taken(cells, shown))
            draw = partial(_drawn, lines[0], cells, item.table, shown, names=known)
        yield refers(row.key, draw)
        for number, more in enumerate(lines[1:]):
            yield replace(refers((row.key, "more", number), fixed(more)), head=True, table=None)
        if look.wraps:
            yield from _whole(row, pieces, draw, look, refers)
    else:
        yield from _wrapped(row, words, indent + "  " * bool(item.table), look, refers)
    code = text_rows(row.code, look, key=(row.key, "code"), depth=item.depth + 2) if row.code else ()
    for line in code:
        yield refers(line.key, line.draw)


def _is_of_code(row: tree.Row, table: Table) -> bool:
    """Whether a row's words are code, or a line and its code, or are aligned with those of other rows."""
    return table.code or (bool(table.least) and _is_aligned(row)) or isinstance(next(iter(row.words), None), Place)


def _broken(item: Item, pieces: StyledRow, room: int) -> list[StyledRow]:
    """Words on as many lines of `room` cells as they take, those after the first further in; on one, which is cut,
    where a line would say too little.
    """
    lead = " " * (5 + INDENT * item.depth)
    text = "".join(part for part, _ in pieces)
    if cell_len(text) <= room or room - len(lead) < _NARROW:
        return [pieces]
    lines: list[StyledRow] = []
    start = 0
    while start < len(text):
        end = _break(text, start, room - (len(lead) if lines else 0))
        lines.append([*([(lead, "")] if lines else []), *_between(pieces, start, end)])
        start = end + len(text[end:]) - len(text[end:].lstrip())
    return lines


def _break(text: str, start: int, room: int) -> int:
    """Where a line of `room` cells ends that begins at `start`: before a blank, if it has one."""
    if cell_len(text[start:]) <= room:
        return len(text)
    end = start + max(len(chop_cells(text[start:], room)[0]), 1)
    blank = text.rfind(" ", start + _NARROW // 2, end + 1)
    return blank if blank > start else end


def _between(pieces: StyledRow, start: int, end: int) -> Iterator[tuple[str, str]]:
    """What of the pieces is between two places of their text."""
    at = 0
    for text, style in pieces:
        if part := text[max(start - at, 0) : max(end - at, 0)]:
            yield part, style
        at += len(text)


def _taken(cells: Sequence[tuple[str, str]], shown: Layout) -> int:
    """Cells of a row that its words have not: those of its columns from the first that is not empty."""
    empty = next((at for at, (text, _) in enumerate(cells) if text), len(cells))
    return sum(shown.widths[at] + GAP for at in shown.shown[empty:])


def _whole(
    row: tree.Row,
    pieces: list[tuple[str, str]],
    draw: Callable[[int], StyledRow],
    look: Look,
    refers: Callable[..., Row],
) -> Iterator[Row]:
    """The words of a row in which they are cut."""
    text = "".join(part for part, _ in pieces)
    if "".join(part for part, _ in draw(look.width)).startswith(text):
        return
    lead = " " * (len(text) - len(text.lstrip()) + 2)
    for number, line in enumerate(wrapped(text.strip(), look.width - len(lead))):
        yield refers((row.key, "whole", number), fixed([(lead + line, "dim")]))


def _wrapped(
    row: tree.Row, words: list[tuple[str, str]], indent: str, look: Look, refers: Callable[..., Row]
) -> Iterator[Row]:
    end = _TRY if row.suggestion is not None else ""
    room = look.width - len(indent) - (not row.hangs)
    text = "".join(part for part, _ in words)
    if cell_len(text) + len(end) <= room:
        yield refers(row.key, fixed([(indent, ""), *words, (end, "accent")]))
        return
    if row.hangs:
        yield from _hanging(row, words, indent, room, refers)
        return
    tone = next((tone for part, tone in words if part.strip()), "")
    lines = wrapped(text, room - len(end) - 2)
    for number, line in enumerate(lines):
        last = end if number == len(lines) - 1 else ""
        start = indent + "  " * bool(number)
        yield refers(row.key if number == 0 else (row.key, number), fixed([(start + line, tone), (last, "accent")]))


def _hanging(
    row: tree.Row, words: list[tuple[str, str]], indent: str, room: int, refers: Callable[..., Row]
) -> Iterator[Row]:
    """A label, and beside it the text on as many lines as it takes."""
    label, (name, tone), *more = words
    text = "".join(part for part, _ in words[1:])
    last = more[-1][1] if more else tone
    for number, line in enumerate(wrapped(text, room - cell_len(label[0]))):
        if number:
            yield refers((row.key, number), fixed([(indent + " " * cell_len(label[0]), ""), (line, last)]))
        else:
            named = name if line.startswith(name) else line
            yield refers(row.key, fixed([(indent, ""), label, (named, tone), (line.removeprefix(named), last)]))


def _refers(row: tree.Row, item: Item) -> Callable[..., Row]:
    refs = row.refs
    return partial(
        Row,
        enter=row.opens or ("fold" if row.folds else ""),
        fold=row.key if row.folds else None,
        is_open=item.open,
        inside=item.inside,
        frame=refs.frame,
        file=refs.file,
        line=refs.line,
        nodes=refs.nodes,
        kernel=refs.kernel,
        before=refs.before,
        after=refs.after,
        sought=row.repro,
        again=row.suggestion,
        copied=row.copied,
        sides=row.sides,
        table=item.table,
    )


def _cells(row: tree.Row, table: Table, shown: Layout, place: Callable[[Place], str]) -> list[tuple[str, str]]:
    found = map(plain, texts(row.cells, table, shown.shown, place))
    tones = [row.cells[at].tone if at < len(row.cells) else "" for at in shown.shown]
    usual = {"place": "accent", "bar": "accent"}
    kinds = [table.columns[at].kind for at in shown.shown]
    return [(text, usual.get(kind) or tone) for text, tone, kind in zip(found, tones, kinds, strict=True)]


def _drawn(
    words: StyledRow,
    cells: Sequence[tuple[str, str]],
    table: Table,
    shown: Layout,
    width: int,
    *,
    names: Mapping[str, str] | None = None,
    sorted_by: str = "",
    arrow: str = "",
) -> StyledRow:
    """The words, cut at their end, and the cells of the shown columns, each with its look; over the first columns that
    are empty in this row the words go on. With `names` the words begin with a name, which is shortened as `names` has
    it, else in its middle. An `arrow` is before the head `sorted_by`.
    """
    empty = next((at for at, (text, _) in enumerate(cells) if text), len(cells))
    columns, cells = shown.shown[empty:], cells[empty:]
    room = width - sum(shown.widths[at] + GAP for at in columns)
    if names is not None:
        at = _name_at(words)
        name, tone = words[at]
        spare = max(room - sum(cell_len(text) for text, _ in words[:at]), 1)
        short = name if cell_len(name) <= spare else cut(names.get(name, name), spare)
        words = [*words[:at], (short, tone), *words[at + 1 :]]
    lead = clipped(words, room)
    drawn = [*lead, (" " * (room - sum(cell_len(text) for text, _ in lead)), "")]
    for at, (text, style) in zip(columns, cells, strict=True):
        wide, kind = shown.widths[at], table.columns[at].kind
        text = f"{text:>{wide}}" if is_number(kind) else fit(shortened(text, kind, wide), wide)
        gap = " " * GAP
        if sorted_by and table.columns[at].head == sorted_by:
            gap, text = gap[1:], f"{arrow + text.lstrip():{'>' if text.startswith(' ') else ''}{wide + 1}}"
        drawn.append((gap + text, style))
    return drawn
