"""Describe what is shown as data: sections of rows, cells and charts, without a width, a colour or a unit."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from idbg.analysis.decisions.side_by_side import SideLine as SideLine
from idbg.analysis.decisions.side_by_side import around_changes, side_by_side
from idbg.analysis.decisions.suggestions import Suggestion as Suggestion  # widgets know no room but this one
from idbg.schema.code import Kernel
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.programs import Verdict as RunVerdict
from idbg.schema.repros import Sought
from idbg.schema.runs import Run

Tone = Literal[
    "", "strong", "dim", "accent", "reject", "fallback", "pad", "tile", "slow", "unknown", "clean"
]  # each painter has a look for it
VERDICT_TONES: dict[RunVerdict, Tone] = {
    "clean": "clean",
    "compiled": "clean",
    "violations": "fallback",
    "empty": "fallback",
    "wrong": "reject",
    "failed": "reject",
    "waiting": "slow",
}
"""How the sign of a run's verdict is shown."""
Kind = Literal[
    "text",
    "sentence",
    "names",
    "seconds",
    "evaluation",
    "bytes",
    "count",
    "share",
    "ratio",
    "error",
    "moment",
    "place",
    "code",
    "bar",
]
Verdict = Literal["ok", "warning", "error", "unknown"]
Unfolded = Literal["", "text", "screen", "all", "label"]
"""Where the rows below a row are listed at first: nowhere, in outputs that cannot unfold them, in those that can fold
them, everywhere."""


class Place(NamedTuple):
    """A line of the user's: each painter writes the file as its readers know it."""

    file: str
    line: int


class Span(NamedTuple):
    """A piece of a row's words."""

    text: str
    tone: Tone = ""


Words = tuple[Span | Place, ...]
Value = str | float | Place | None
"""What a cell holds: seconds, bytes, a share of 1, seconds since the epoch, ... as its column's kind has it; None where
it is not known.
"""


class Cell(Struct, frozen=True):
    """One value of a row. `tone` "" is the painter's usual one for its kind."""

    value: Value
    tone: Tone = ""


class Column(Struct, frozen=True):
    """A column after the words. Where room is short, columns with the lowest `rank` are left out first; one with a
    `least` stays, and is cut down to so many cells.
    """

    head: str
    kind: Kind = "text"
    rank: int = 1
    least: int = 0


class Refs(Struct, frozen=True, omit_defaults=True):
    """What a row is about: the cursor follows it, links lead to it. `before` and `after` are the graphs beside it."""

    nodes: tuple[NodeId, ...] = ()
    kernel: tuple[str, Part, str] | None = None  # frame, part, name
    file: str = ""
    line: int = 0
    frame: str = ""
    before: GraphId | None = None
    after: GraphId | None = None


NO_REFS = Refs()
Opens = Literal["", "fold", "edit", "node", "kernel", "sides", "partitions"]
"""What enter does on a row: (un)folds it, opens its line in an editor, goes to its node or kernel, shows its sides,
lists the partitions of the graph."""


class Sides(Struct, frozen=True):
    """Two texts that painters show beside one another, and their names; "" where there is one alone."""

    before: str
    after: str
    name_before: str
    name_after: str
    language: str = ""

    @property
    def lines(self) -> tuple[SideLine | None, ...]:
        """The lines that differ and those around them; None for lines left out."""
        return around_changes(side_by_side(self.before, self.after))


class Chart(Struct, frozen=True):
    """A picture of `data`, drawn by each painter that has a drawing of this name; the others leave it out."""

    name: Literal["flame", "phases", "bench", "samples", "launches", "training", "histogram", "error map", "memory"]
    data: object
    caption: str = ""


class Row(Struct, frozen=True):
    """One row. `key` identifies it, also in the next version of the section: the cursor and folds stay.

    `rows` are folded below it, unless `open`; a function makes them when they are unfolded. The words of a "label" name
    what is folded, and nothing else: text, in which nothing can be unfolded, leaves it out. `code` stands below the
    words, and `charts` below that. `repro` is what a script can be written of, `suggestion` what can be tried,
    `sides` what can be compared. Where it goes on below its first line, it does so after as many cells as its first
    word takes if it `hangs`.
    """

    key: Hashable
    words: Words
    cells: tuple[Cell, ...] = ()
    rows: "Sequence[Row] | Callable[[], Iterable[Row]]" = ()
    open: Unfolded = ""
    refs: Refs = NO_REFS
    opens: Opens = ""
    code: str = ""
    repro: Sought | None = None
    suggestion: Suggestion | None = None
    copied: str = ""
    sides: Sides | None = None
    charts: tuple[Chart, ...] = ()
    hangs: bool = False

    @property
    def folds(self) -> bool:
        """Whether there are rows below it."""
        return callable(self.rows) or bool(self.rows)

    @property
    def below(self) -> "Sequence[Row]":
        """The rows below it."""
        return tuple(self.rows()) if callable(self.rows) else self.rows

    @property
    def text(self) -> str:
        """Its words, without tones."""
        return "".join(_text(word) for word in self.words)


class Table(Struct, frozen=True):
    """Rows that share columns; `noun` is what one row is: "function". `title` stands above the heads. `names`: each row
    begins with a name, which stays distinct where it is shortened. Columns give way until the words have as many cells
    as they need, at most `least`; 0 is as many as suit most tables. With `least` rows are sentences: they are cut at
    their end, and their last words are aligned. `code`: so are words that are code; others go on below the row.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    noun: str = "row"
    title: str = ""
    names: bool = False
    least: int = 0
    code: bool = False


Block = Row | Table | Chart


class Section(Struct, frozen=True):
    """The answer to one question. `summary` is one sentence, also where there is nothing to list; `count` is the number
    that tabs, headers and lists show. Verdict and count are decided here, and nowhere else.
    """

    title: str
    summary: str
    count: int | None = 0  # None: not known
    verdict: Verdict = "ok"
    body: tuple[Block, ...] = ()


class Options(Struct, frozen=True):
    """How the user looks at a section: with what matters little too (`everything`) or only with what matters most
    (`narrow`), in which `order` of the view's own.

    While the run goes on `now` is the time, and a phase usually takes `typical` seconds; `earlier` are runs of the same
    program that ended well.
    """

    everything: bool = False
    narrow: bool = False
    order: int = 0
    now: float | None = None
    typical: Mapping[str, float] = {}
    earlier: tuple[Run, ...] = ()


NO_OPTIONS = Options()


class Item(NamedTuple):
    """A row as it is listed: how deep, below which rows, whether unfolded, in which table. Without a row: the heads."""

    row: Row | None
    depth: int = 0
    inside: tuple[Hashable, ...] = ()
    open: bool = False
    table: Table | None = None


def items(section: Section, is_open: Callable[[Row], bool], most: int | None = None) -> Iterator[Item]:
    """Every row that is listed, in order, each table under its heads; of one list at most `most` rows, and how many
    more there are.
    """
    for block in section.body:
        if isinstance(block, Row):
            yield from _items([block], None, is_open, most, 0, ())
        elif isinstance(block, Table) and block.rows:
            yield Item(None, table=block)
            yield from _items(block.rows, block, is_open, most, 0, ())


def _items(
    rows: Sequence[Row],
    table: Table | None,
    is_open: Callable[[Row], bool],
    most: int | None,
    depth: int,
    inside: tuple[Hashable, ...],
) -> Iterator[Item]:
    listed = rows if most is None or len(rows) <= most else _limited(rows, most)
    for row in listed:
        unfolded = row.folds and is_open(row)
        yield Item(row, depth, inside, unfolded, table)
        if unfolded:
            yield from _items(row.below, table, is_open, most, depth + 1, (*inside, row.key))
    if len(listed) < len(rows):
        more = Row((inside, "more"), (Span(f"and {len(rows) - len(listed):,} more", "dim"),))
        yield Item(more, depth, inside, table=table)


def referring(section: Section) -> Iterator[Row]:
    """Every row that refers to something, folded or not, in order."""
    waiting: list[Row] = []
    for block in section.body:
        waiting += block.rows if isinstance(block, Table) else [block] if isinstance(block, Row) else []
    while waiting:
        row = waiting.pop(0)
        if row.refs != NO_REFS:
            yield row
        waiting[:0] = row.below


def having(section: Section, wanted: Callable[[Row], bool], *, notes: bool = False) -> Section:
    """The section with only the rows that are wanted and those that they are below; with `notes` also what is directly
    below a wanted row and refers to nothing.
    """
    body: list[Block] = []
    for block in section.body:
        if isinstance(block, Table):
            rows = _having(block.rows, wanted, notes)
            body += [structs.replace(block, rows=rows)] if rows else []
        elif isinstance(block, Row):
            body += _having([block], wanted, notes)
    return structs.replace(section, body=tuple(body))


def _having(rows: Sequence[Row], wanted: Callable[[Row], bool], notes: bool, noted: bool = False) -> list[Row]:
    found = []
    for row in rows:
        mine = wanted(row)
        below = _having(row.below, wanted, notes, notes and mine) if row.folds else []
        if below or mine or (noted and row.refs == NO_REFS):
            found.append(structs.replace(row, rows=below) if row.folds else row)
    return found


def _limited(rows: Sequence[Row], most: int) -> list[Row]:
    """So many rows with cells, and as many without: the notes on a row stand beside the rows that it has."""
    listed: list[Row] = []
    seen = {True: 0, False: 0}
    for row in rows:
        seen[bool(row.cells)] += 1
        if seen[bool(row.cells)] <= most:
            listed.append(row)
    return listed


Direction = Literal["", "up", "down"]
"""How rows are sorted: ""  as suits the column, texts upwards and numbers from the largest down."""
Order = tuple[str, Direction]
"""The column by which rows are sorted, and whether up or down."""
UNSORTED: Order = ("", "")
"""Rows are in the order in which they came."""
_TEXTS = ("text", "sentence", "names", "place", "code")
_SIGNS = re.compile(r"^\W+")  # before a row's words: they do not count where rows are sorted


def sorting_columns(section: Section) -> list[str]:
    """The names of the columns by which the section's rows can be sorted, each once: a table's noun is its words'."""
    tables = [block for block in section.body if isinstance(block, Table)]
    names = (name for table in tables for name in (table.noun, *(column.head for column in table.columns)))
    return list(dict.fromkeys(name for name in names if name))


def ordered(section: Section, name: str, direction: Direction = "") -> Section:
    """The section with the rows of each table that has a column of that name sorted by it, unknown values last."""
    body = tuple(ordered_table(block, name, direction) if isinstance(block, Table) else block for block in section.body)
    return structs.replace(section, body=body)


def usual_direction(table: Table, name: str) -> Direction:
    """How a column's rows are sorted at first."""
    kind = next((column.kind for column in table.columns if column.head == name), "text")
    return "up" if kind in _TEXTS else "down"


def ordered_table(table: Table, name: str, direction: Direction = "") -> Table:
    """The table with its rows sorted by the column of that name, as it is where it has none."""
    at = next((at for at, column in enumerate(table.columns) if column.head == name), None)
    if at is None and name != table.noun:
        return table

    def value(row: Row) -> Value:
        return _SIGNS.sub("", row.text) if at is None else row.cells[at].value if at < len(row.cells) else None

    descending = (direction or usual_direction(table, name)) == "down"
    if all(row.folds and not row.cells for row in table.rows):  # each is the heading of a group
        groups = [structs.replace(row, rows=_in_order(row.below, value, descending)) for row in table.rows]
        return structs.replace(table, rows=groups)
    return structs.replace(table, rows=_in_order(table.rows, value, descending))


def _in_order(rows: Sequence[Row], value: Callable[[Row], Value], descending: bool) -> list[Row]:
    known = [row for row in rows if value(row) not in (None, "")]
    unknown = [row for row in rows if value(row) in (None, "")]
    numbers = [row for row in known if isinstance(value(row), int | float)]
    texts = [row for row in known if not isinstance(value(row), int | float)]
    return [
        *sorted(numbers, key=value, reverse=descending),  # type: ignore[arg-type]  # all are numbers
        *sorted(texts, key=lambda row: _text_of(value(row)), reverse=descending),
        *unknown,
    ]


def _text_of(value: Value) -> str:
    return f"{value.file}:{value.line:09}" if isinstance(value, Place) else str(value)


def words(*parts: "str | Span | Place | tuple[str, Tone]") -> Words:
    """Words of plain texts, (text, tone) and places; empty texts are left out."""
    made = (part if isinstance(part, Place) else Span(part) if isinstance(part, str) else Span(*part) for part in parts)
    return tuple(part for part in made if isinstance(part, Place) or part.text)


def kernel_refs(kernel: Kernel) -> tuple[str, Part, str]:
    """How a kernel is named among all of a run."""
    return kernel.frame, kernel.part, kernel.name


def _text(word: Span | Place) -> str:
    return f"{word.file}:{word.line}" if isinstance(word, Place) else word.text
