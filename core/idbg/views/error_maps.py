"""Describe the error over a slice of an output: its title, the level of each cell, and the legend."""

from collections.abc import Sequence
from math import ceil, log10

from idbg.format.amounts import figure
from idbg.format.glyphs import MARKS
from idbg.schema.diff import LARGEST, ErrorMap

STEPS = 8
"""Levels of an error, a decade each, down from the largest: 0 is the least."""

EQUAL, NONFINITE = "every element of this slice is equal", "NaN or infinity on one side"


def title(error_map: ErrorMap) -> str:
    """Which slice it is, of what shape, and what each cell is."""
    rows, columns = error_map.shape
    block = f"{ceil(rows / len(error_map.cells))} {MARKS['times']} {ceil(columns / len(error_map.cells[0]))}"
    lead = "".join(f"{at}, " for at in error_map.index)
    return f"{error_map.name}[{lead}:, :] {rows:,} {MARKS['times']} {columns:,}: the largest |d| of each {block} block"


def is_equal(error_map: ErrorMap) -> bool:
    """Whether no element of the slice differs."""
    return not any(any(cells) for cells in error_map.cells)


def has_nonfinite(error_map: ErrorMap) -> bool:
    """Whether NaN or an infinity is on one side only somewhere."""
    return any(cell >= LARGEST for cells in error_map.cells for cell in cells)


def largest(error_map: ErrorMap) -> float:
    """The largest error that is a number; 0.0 where there is none."""
    return max((cell for cells in error_map.cells for cell in cells if cell < LARGEST), default=0.0)


def top(error_map: ErrorMap) -> int:
    """The power of ten that the hottest level goes up to."""
    return ceil(log10(most)) if (most := largest(error_map)) else 0


def level(value: float, high: int) -> int:
    """A place among the levels, of an error above 0 under the power of ten that is the `top`."""
    return max(0, min(STEPS - 1, STEPS - 1 + ceil(log10(value)) - high))


def ends(high: int) -> tuple[str, str]:
    """Up to which error the coolest level and the hottest go."""
    return f"to {figure(10.0 ** (high - STEPS + 1))}", f"to {figure(10.0**high)}"


def levels(error_map: ErrorMap, *, equal: int, nonfinite: int) -> Sequence[Sequence[int]]:
    """The level of each cell; `equal` where nothing differs, `nonfinite` where NaN or an infinity is on one side."""
    high = top(error_map)
    return [
        [equal if not cell else nonfinite if cell >= LARGEST else level(cell, high) for cell in cells]
        for cells in error_map.cells
    ]
