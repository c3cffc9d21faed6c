"""Draw time as boxes inside one another."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from idbg.reports.drawings.scales import Scale, ticks
from idbg.reports.drawings.svg import WIDTH, cut, element, picture, text, tips, wide

_ROW, _AXIS = 18.0, 22.0
_LEAST = 26.0  # units of a box that has room for letters


class FlameBox(NamedTuple):
    """A stretch of a row, in cells. `look` is the class of its colour; `tip` is the tooltip."""

    row: int
    start: int
    length: int
    label: str
    tip: str
    look: str


def flame(boxes: Sequence[FlameBox], cells: int, seconds: float, *, title: str) -> Markup:
    """Rows from the outermost down, over an axis of `seconds` that are `cells` wide."""
    step = WIDTH / cells
    across = Scale(0.0, max(seconds, 1e-9), 0.0, WIDTH)
    rows = 1 + max((box.row for box in boxes), default=0)
    bottom = _AXIS + rows * _ROW
    children: list[Markup] = []
    for value in ticks(across, 8):
        x, label = across.at(value), f"{value:.3g} s"
        children.append(element("path", d=f"M{x:.1f} {_AXIS - 6:.1f}V{bottom:.1f}", class_="grid"))
        if x + wide(label) < WIDTH:
            children.append(text(x + 2, _AXIS - 9, label, "dim"))
    for box in boxes:
        x, y, width = box.start * step, _AXIS + box.row * _ROW, max(box.length * step, 0.6)
        inside = [element("rect", x=x, y=y, width=width, height=_ROW - 1, class_=box.look)]
        if width >= _LEAST:
            inside.append(text(x + 3, y + 12.5, cut(box.label, width - 6), "inside"))
        children.append(element("g", *tips(box.tip), *inside))
    return picture(bottom + 2, children, title=title, kind="flame")
