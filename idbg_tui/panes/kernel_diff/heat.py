"""How does the error over a slice look, as cells from cold to hot?"""

from collections.abc import Iterator
from math import ceil, log10

from msgspec.structs import replace

from idbg.format.amounts import figure
from idbg.format.glyphs import LEVELS, MARKS
from idbg.schema.diff import LARGEST, ErrorMap
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.listing import Entry, sentences

# from least to most; each is told from its neighbours by its brightness too
RAMP = ("#20204a", "#3b2f80", "#6b3fa0", "#a0409a", "#d04a78", "#ee6c4d", "#f9a03f", "#fce27a")
_EQUAL = "#101018"
_NONFINITE = "#ffffff"
_DECADES = len(RAMP)  # what the ramp spans, down from the largest error


def entries(error_map: ErrorMap, width: int, *, colours: bool = True) -> list[Entry]:
    """What slice it is, the cells, and what their colours stand for."""
    error_map = _narrowed(error_map, width)
    rows, columns = error_map.shape
    high = ceil(log10(most)) if (most := _most(error_map)) else 0
    block = f"{ceil(rows / len(error_map.cells))} {MARKS['times']} {ceil(columns / len(error_map.cells[0]))}"
    lead = "".join(f"{at}, " for at in error_map.index)
    said = f"{error_map.name}[{lead}:, :] {rows:,} {MARKS['times']} {columns:,}: the largest |d| of each {block} block"
    head = list(sentences(said, width, "strong"))
    if not any(any(cells) for cells in error_map.cells):
        return [*head, *sentences("every element of this slice is equal", width, "dim")]
    legend = _legend(error_map, high, colours)
    return [
        *head,
        *(_halves(error_map, high) if colours else _plain(error_map, high)),
        Entry.fixed(legend, picture=True),
    ]


def _narrowed(error_map: ErrorMap, width: int) -> ErrorMap:
    """The map in at most `width` cells: the largest of neighbours stands for them."""
    step = ceil(len(error_map.cells[0]) / max(1, width - 2))
    cells = tuple(tuple(max(row[at : at + step]) for at in range(0, len(row), step)) for row in error_map.cells)
    return replace(error_map, cells=cells)


def _most(error_map: ErrorMap) -> float:
    return max((cell for cells in error_map.cells for cell in cells if cell < LARGEST), default=0.0)


def _level(value: float, high: int) -> int:
    """A place in the ramp: a decade each, below the largest error."""
    return max(0, min(_DECADES - 1, _DECADES - 1 + ceil(log10(value)) - high))


def _colour(value: float, high: int) -> str:
    if value == 0:
        return _EQUAL
    return _NONFINITE if value >= LARGEST else RAMP[_level(value, high)]


def _halves(error_map: ErrorMap, high: int) -> Iterator[Entry]:
    """Two rows of cells in one line: the upper is the colour of the sign, the lower the one behind it."""
    blank = (0.0,) * len(error_map.cells[0])
    for at in range(0, len(error_map.cells), 2):
        upper, lower = error_map.cells[at], error_map.cells[at + 1] if at + 1 < len(error_map.cells) else blank
        pairs = zip(upper, lower, strict=True)
        row: StyledRow = [
            (" ", ""),
            *(("▀", f"{_colour(one, high)} on {_colour(other, high)}") for one, other in pairs),
        ]
        yield Entry.fixed(row, picture=True)


def _plain(error_map: ErrorMap, high: int) -> Iterator[Entry]:
    for cells in error_map.cells:
        signs = (" " if not cell else "!" if cell >= LARGEST else LEVELS[_level(cell, high)] for cell in cells)
        row: StyledRow = [(" " + "".join(signs), "")]
        yield Entry.fixed(row, picture=True)


def _legend(error_map: ErrorMap, high: int, colours: bool) -> StyledRow:
    low = high - _DECADES
    steps: StyledRow = [("▀", f"{colour} on {colour}") for colour in RAMP] if colours else [("".join(LEVELS), "")]
    ramp: StyledRow = [(f" to {figure(10.0 ** (low + 1))} ", "dim"), *steps, (f" to {figure(10.0**high)}", "dim")]
    if not any(cell >= LARGEST for cells in error_map.cells for cell in cells):
        return ramp
    sign = ("▀", f"{_NONFINITE} on {_NONFINITE}") if colours else ("!", "")
    return [*(ramp if _most(error_map) else ()), (" ", ""), sign, (" NaN or infinity on one side", "dim")]
