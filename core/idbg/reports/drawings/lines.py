"""Draw a value over another as lines: by kernel, by step, by day."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from idbg.reports.drawings.scales import Scale, is_drawn, scale, ticks
from idbg.reports.drawings.svg import WIDTH, cut, element, number, picture, text, tips, wide

_LEFT, _RIGHT, _TOP = 76.0, 20.0, 24.0
_HEIGHT = 230.0  # units of the field between the axes
_BELOW = 52.0  # units below the field: figures, and what the axis is
_DOTS = 400  # of a line that are drawn with a tip of their own; of more only the line
_LEGEND = 20.0


class Point(NamedTuple):
    """None as `y` was not measured: the line has a gap there."""

    x: float
    y: float | None
    tip: str = ""
    look: str = ""  # of this point alone


@dataclass(frozen=True)
class Line:
    """Points in the order of their x; `look` is the class of their colour. `joined`: a line goes through them."""

    name: str
    points: Sequence[Point]
    look: str = "c1"
    joined: bool = True
    dots: bool = True


@dataclass(frozen=True)
class Axis:
    """The title of an axis, whether it goes by powers of ten, how its values are written. `whole`: only whole ones."""

    title: str
    write: Callable[[float], str] = "{:g}".format
    log: bool = False
    whole: bool = False
    zero: bool = True  # a linear one begins at 0
    ticks: int = 8


def lines(drawn: Sequence[Line], *, title: str, x: Axis, y: Axis) -> Markup:
    """The lines over one another, with their names above the field."""
    points = [point for line in drawn for point in line.points]
    keys, rows = _legend(drawn)
    top = _TOP + rows * _LEGEND
    across = scale([point.x for point in points], _LEFT, WIDTH - _RIGHT, log=x.log, zero=x.zero)
    up = scale([p.y for p in points if p.y is not None], top + _HEIGHT - 18, top + 18, log=y.log, zero=y.zero)
    children = [
        text(0, _TOP - 10, y.title, "dim"),
        *keys,
        *_frame(across, up, x, y, top),
        *_beyond(points, up, y),
        *(piece for line in drawn for piece in _line(line, across, up)),
        text(WIDTH - _RIGHT, top + _HEIGHT + 40, x.title, "dim", "end"),
    ]
    return picture(top + _HEIGHT + _BELOW, children, title=title, kind="lines")


def _legend(drawn: Sequence[Line]) -> tuple[list[Markup], int]:
    """The names of the lines, each after a stroke of its colour, and how many rows they take."""
    pieces: list[Markup] = []
    x, row = 0.0, 0
    for line in drawn:
        name = cut(line.name, WIDTH / 2)
        if x and x + wide(name) + 30 > WIDTH:
            x, row = 0.0, row + 1
        y = _TOP + row * _LEGEND + 8
        pieces.append(element("path", d=f"M{number(x)} {number(y)}h18", class_=f"curve {line.look}"))
        pieces.append(text(x + 24, y + 4, name, tip=line.name))
        x += wide(name) + 44
    return pieces, row + 1 if drawn else 0


def _frame(across: Scale, up: Scale, x: Axis, y: Axis, top: float) -> Iterator[Markup]:
    bottom = top + _HEIGHT
    yield element("path", d=f"M{number(_LEFT)} {number(top)}V{number(bottom)}H{number(WIDTH - _RIGHT)}", class_="axis")
    for value in ticks(up, 6):
        at = up.at(value)
        yield element("path", d=f"M{number(_LEFT)} {number(at)}H{number(WIDTH - _RIGHT)}", class_="grid")
        yield text(_LEFT - 8, at + 4, y.write(value), "dim", "end")
    shown = [value for value in ticks(across, x.ticks) if not x.whole or value == int(value)]
    for value in shown:
        at = across.at(value)
        yield element("path", d=f"M{number(at)} {number(bottom)}v5", class_="axis")
        yield text(at, bottom + 20, x.write(value), "dim", "middle")


def _beyond(points: Sequence[Point], up: Scale, y: Axis) -> Iterator[Markup]:
    """Where a logarithmic axis has what no power of ten is: 0, and what is infinite."""
    values = [point.y for point in points if point.y is not None]
    if y.log and any(value <= 0 for value in values if is_drawn(value)):
        yield text(_LEFT - 8, up.at(0.0) + 4, "0", "dim", "end")
    if y.log and any(not is_drawn(value) for value in values):
        yield text(_LEFT - 8, up.at(float("inf")) + 4, "inf", "dim", "end")


def _line(line: Line, across: Scale, up: Scale) -> Iterator[Markup]:
    placed = [(p, across.at(p.x), None if p.y is None else up.at(p.y)) for p in line.points]
    if line.joined:
        path, pen = "", "M"
        for _, x, y in placed:
            path += f"{pen}{number(x)} {number(y)}" if y is not None else ""
            pen = "M" if y is None else "L"
        if path:
            yield element("path", d=path, class_=f"curve {line.look}")
    few = sum(y is not None for _, _, y in placed) <= _DOTS
    for point, x, y in placed:
        if y is not None and ((line.dots and few) or point.look):
            tip = point.tip or f"{line.name}: {point.y:.3g}"
            yield element("circle", *tips(tip), cx=x, cy=y, r=4.5 if point.look else 3, class_=point.look or line.look)
