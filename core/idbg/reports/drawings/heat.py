"""Draw the error over a slice of a tensor, from cold to hot."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from idbg.reports.drawings.svg import element, number, picture, text, wide

_FIELD = (480.0, 320.0)  # units that the cells take together, at most: across, down
_CELL = (1.0, 24.0)  # of one cell, at least and at most
_SIDE, _HEAD, _FOOT = 60.0, 20.0, 44.0
_KEY = 22.0


def heat(
    levels: Sequence[Sequence[int]],
    *,
    title: str,
    shape: tuple[int, int],
    legend: Sequence[tuple[int, str]],
) -> Markup:
    """Rows of cells, each by its level: the class `h` and the level (0 to 7 from least to most, 8 equal, 9 infinite).

    `shape` is that of the slice, for the figures at its sides; `legend` names the levels.
    """
    down, across = len(levels), max((len(row) for row in levels), default=0)
    side = max(min(_FIELD[0] / max(across, 1), _FIELD[1] / max(down, 1), _CELL[1]), _CELL[0])
    width, height = across * side, down * side
    keys = _legend(legend, _SIDE, _HEAD + height + 24)
    children = [
        text(_SIDE - 8, _HEAD + 10, "0", "dim", "end"),
        text(_SIDE - 8, _HEAD + max(height, 24), f"{shape[0] - 1:,}", "dim", "end"),
        text(_SIDE, _HEAD - 6, "0", "dim"),
        text(_SIDE + max(width, 60), _HEAD - 6, f"{shape[1] - 1:,}", "dim", "end"),
        *_cells(levels, side),
        element("rect", x=_SIDE, y=_HEAD, width=width, height=height, class_="edge"),
        *keys,
    ]
    return picture(_HEAD + max(height, 24) + _FOOT, children, title=title, kind="heat")


def _cells(levels: Sequence[Sequence[int]], side: float) -> Iterator[Markup]:
    """One path for each level: of cells beside one another a single stretch."""
    paths: dict[int, list[str]] = {}
    for down, row in enumerate(levels):
        at = 0
        for level, alike in groupby(row):
            long = sum(1 for _ in alike)
            place = f"M{number(_SIDE + at * side)} {number(_HEAD + down * side)}"
            paths.setdefault(level, []).append(f"{place}h{number(long * side)}v{number(side)}h-{number(long * side)}z")
            at += long
    for level, path in sorted(paths.items()):
        yield element("path", d="".join(path), class_=f"h{level}")


def _legend(legend: Sequence[tuple[int, str]], x: float, y: float) -> Iterator[Markup]:
    for level, label in legend:
        yield element("rect", x=x, y=y - 11, width=_KEY - 4, height=13, class_=f"h{level} key")
        if label:
            yield text(x + _KEY, y, label, "dim")
        x += _KEY + (wide(label) + 14 if label else 0)
