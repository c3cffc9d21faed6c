"""Rows of a drawn section: how each is drawn, what it is about, and what its keys do."""

import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, overload

from idbg.format.glyphs import MARKS, plain
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.views.tree import Direction, Sides, Suggestion, Table
from idbg_tui.widgets.lines import StyledRow, clip

Enter = Literal["", "fold", "edit", "node", "kernel", "sides", "partitions", "zoom", "why"]
"""What enter does on a row: (un)folds it, opens its line, goes to its node or kernel, shows its sides, lists the
partitions, zooms in, or goes to the decision that is its key in the pane Why."""

INDENT = 2
"""Cells by which a row is indented below the one that it is folded under."""


def table_key(table: Table) -> str:
    """The name by which the order of a table's rows is remembered: the same in the next run."""
    return "\n".join((table.noun, *(column.head for column in table.columns)))


@dataclass(frozen=True)
class Look:
    """How the user looks at a view: cells of a row, files among which names are unique, folds that are `turned`
    from their first state, what is looked for, whether what matters least is left out, an `order` of the
    view's own, and whether all is unfolded (`whole`), whatever the folds are. While the run goes on it is `now`, and a
    phase takes `typical` seconds; `earlier` are runs of the same program that ended well. Of a picture the block in
    `focus`, and that in which it is zoomed: ids of spans, 0 for none. `sorts` has the column by which the rows of a
    table are sorted, and whether up or down, by the table's key. With `wraps` a row whose words are cut has them whole
    below it.
    """

    width: int = 100
    files: frozenset[str] = frozenset()
    turned: frozenset[Hashable] = frozenset()
    query: str = ""
    hiding: bool = False
    order: int = 0
    whole: bool = False
    now: float | None = None
    typical: Mapping[str, float] = field(default_factory=dict)
    earlier: tuple[Run, ...] = ()
    focus: int = 0
    zoom: int = 0
    sorts: Mapping[str, tuple[str, Direction]] = field(default_factory=dict)
    wraps: bool = False

    def is_open(self, fold: Hashable, *, at_first: bool = False) -> bool:
        """Whether what is under `fold` is listed: as `at_first`, unless the user turned it."""
        return self.whole or at_first != (fold in self.turned)


class Block(NamedTuple):
    """One block of a picture: what it is of, its first cell and how many it takes."""

    id: int
    start: int
    length: int


@dataclass(frozen=True)
class Row:
    """One row of a view. `key` identifies it, also after an update; None: the cursor does not stay on it.

    `draw` returns its pieces for a width. What it is about moves the other panes when the cursor comes to it:
    `nodes` (the first that the shown run has), a `kernel`, or the user's `file` and `line`; `frame` is for `W`.
    `fold` is the key of what is under it, `inside` those that it is under. `before` and `after` are the graphs on
    either side of it. `sought` is what x writes a script of, `again` what to run
    with, `copied` what y copies where that is not the row, and `sides` two texts to
    compare. `blocks` are there of a picture's row. `table` is the one that it is in; the row of its heads has
    the `ends` of the columns' names, in cells from the right. The cursor is first on the row that is `here`.
    """

    key: Hashable
    draw: Callable[[int], StyledRow]
    enter: Enter = ""
    fold: Hashable = None
    is_open: bool = False
    inside: tuple[Hashable, ...] = ()
    frame: str = ""
    file: str = ""
    line: int = 0
    nodes: tuple[NodeId, ...] = ()
    kernel: tuple[str, Part, str] | None = None
    before: GraphId | None = None
    after: GraphId | None = None
    sought: Sought | None = None
    again: Suggestion | None = None
    copied: str = ""
    sides: Sides | None = None
    head: bool = False
    blocks: tuple[Block, ...] = ()
    table: Table | None = None
    ends: tuple[tuple[str, int], ...] = ()
    here: bool = False


class Rows(Sequence[Row]):
    """Rows of which many are made only when they are seen: each by its key, and by what makes it."""

    def __init__(self) -> None:
        self._keys: list[Hashable] = []
        self._makers: list[Callable[[], Row]] = []
        self._made: dict[int, Row] = {}

    def add(self, row: Row) -> None:
        """Add a row that is made."""
        self._made[len(self._keys)] = row
        self.add_later(row.key, lambda: row)

    def add_later(self, key: Hashable, make: Callable[[], Row]) -> None:
        """Add the row that `make` returns, whose key is `key`."""
        self._keys.append(key)
        self._makers.append(make)

    def add_all(self, rows: Iterable[Row]) -> None:
        """Add rows that are made."""
        for row in rows:
            self.add(row)

    def extend(self, others: "Rows") -> None:
        """Add the rows of others, as they are."""
        self._made.update((len(self) + at, row) for at, row in others._made.items())
        self._keys += others._keys
        self._makers += others._makers

    def place(self, key: Hashable) -> int | None:
        """The place of the row with this key; None if none has it."""
        return self._keys.index(key) if key is not None and key in self._keys else None

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        at = at + len(self) if at < 0 else at
        if at not in self._made:
            self._made[at] = self._makers[at]()
        return self._made[at]


def place_of(rows: Sequence[Row], key: Hashable) -> int | None:
    """The place of the row with this key; None if none has it."""
    if isinstance(rows, Rows):
        return rows.place(key)
    return next((at for at, row in enumerate(rows) if key is not None and row.key == key), None)


def sign(*, is_open: bool) -> str:
    """The mark before a row that folds."""
    return MARKS["open"] if is_open else MARKS["closed"]


def text_rows(
    text: str, look: Look, *, key: Hashable, depth: int = 0, style: str = "", inside: tuple[Hashable, ...] = ()
) -> Iterator[Row]:
    """A text on as many rows as it takes, so far to the right."""
    indent = " " * (1 + INDENT * depth)
    for place, line in enumerate(wrapped(plain(text), look.width - len(indent) - 1)):
        yield Row((key, place), fixed([(indent + line, style)]), inside=inside)


def sentences(text: str, look: Look, style: str = "") -> Iterator[Row]:
    """A text on as many rows as it takes."""
    return text_rows(text, look, key=text, style=style)


def picture(rows: Iterable[StyledRow]) -> list[Row]:
    """Rows that are drawn: the cursor goes over them."""
    return [Row(None, fixed(row), head=True) for row in rows]


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a text, each as many as it takes: what is indented stays so."""
    pieces: list[str] = []
    for line in text.splitlines() or [""]:
        indent = line[: len(line) - len(line.lstrip())][: width // 2]
        room = max(width - len(indent), 20)
        pieces += [indent + piece for piece in textwrap.wrap(line.strip(), room, break_on_hyphens=False)] or [""]
    return pieces


def fixed(pieces: StyledRow) -> Callable[[int], StyledRow]:
    """Draws a row that is the same at every width, cut at its end."""

    def draw(width: int) -> StyledRow:
        return clipped(pieces, width)

    return draw


def clipped(pieces: StyledRow, width: int) -> StyledRow:
    """The pieces in at most `width` cells: what does not fit is cut at the end."""
    fitting: list[tuple[str, str]] = []
    for text, style in pieces:
        if width <= 0:
            break
        fitting.append((clip(text, width), style))
        width -= len(text)
    return fitting
