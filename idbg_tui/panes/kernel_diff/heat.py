"""How does the error over a slice look, as cells from cold to hot?"""

from collections.abc import Iterator
from math import ceil

from msgspec.structs import replace

from idbg.format.glyphs import LEVELS
from idbg.schema.diff import LARGEST, ErrorMap
from idbg.views import error_maps
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.listing import Entry, sentences

# from least to most; each is told from its neighbours by its brightness too
RAMP = ("#20204a", "#3b2f80", "#6b3fa0", "#a0409a", "#d04a78", "#ee6c4d", "#f9a03f", "#fce27a")
_EQUAL = "#101018"
_NONFINITE = "#ffffff"
assert len(RAMP) == error_maps.STEPS


def entries(error_map: ErrorMap, width: int, *, colours: bool = True) -> list[Entry]:
    """What slice it is, the cells, and what their colours stand for."""
    error_map = _narrowed(error_map, width)
    head = list(sentences(error_maps.title(error_map), width, "strong"))
    if error_maps.is_equal(error_map):
        return [*head, *sentences(error_maps.EQUAL, width, "dim")]
    high = error_maps.top(error_map)
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


def _colour(value: float, high: int) -> str:
    if value == 0:
        return _EQUAL
    return _NONFINITE if value >= LARGEST else RAMP[error_maps.level(value, high)]


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
        signs = (
            " " if not cell else "!" if cell >= LARGEST else LEVELS[error_maps.level(cell, high)] for cell in cells
        )
        row: StyledRow = [(" " + "".join(signs), "")]
        yield Entry.fixed(row, picture=True)


def _legend(error_map: ErrorMap, high: int, colours: bool) -> StyledRow:
    steps: StyledRow = [("▀", f"{colour} on {colour}") for colour in RAMP] if colours else [("".join(LEVELS), "")]
    coolest, hottest = error_maps.ends(high)
    ramp: StyledRow = [(f" {coolest} ", "dim"), *steps, (f" {hottest}", "dim")]
    if not error_maps.has_nonfinite(error_map):
        return ramp
    sign = ("▀", f"{_NONFINITE} on {_NONFINITE}") if colours else ("!", "")
    return [*(ramp if error_maps.largest(error_map) else ()), (" ", ""), sign, (f" {error_maps.NONFINITE}", "dim")]
