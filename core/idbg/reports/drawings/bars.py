"""Draw values as bars with their samples, and counts as a histogram."""

from collections.abc import Callable, Iterator, Sequence
from math import log10
from typing import NamedTuple

from markupsafe import Markup

from idbg.reports.drawings.scales import Scale, is_drawn, scale, ticks
from idbg.reports.drawings.svg import WIDTH, cut, element, number, picture, text, tips, wide

_ROW, _SLIM, _BAR = 26.0, 16.0, 14.0  # units: of a row, of a row of a histogram, of a bar in its row
_LABELS = (80.0, 280.0)  # units for the names, at least and at most
_GAP = 10.0
_AXIS = 26.0
_SAMPLES = 400  # drawn of one bar: more cannot be distinguished


class Bar(NamedTuple):
    """A value and its text. `low` to `high` is its spread, `samples` are what it was taken of. None was not measured,
    which `label` says. `look` is a class of its colour.
    """

    name: str
    value: float | None
    label: str
    low: float | None = None
    high: float | None = None
    samples: Sequence[float] = ()
    look: str = "c1"
    tip: str = ""


def bars(drawn: Sequence[Bar], *, title: str, write: Callable[[float], str], reach: float | None = None) -> Markup:
    """A row each: the name, the bar with its spread as a line and its samples as strokes below, and its label.

    The axis begins at 0 and goes to `reach`, or to the largest of all; `write` gives the text of a value of it.
    """
    every = [value for bar in drawn for value in (bar.value, bar.high) if value is not None and is_drawn(value)]
    left, right = _columns(drawn)
    across = scale([reach if reach is not None else max(every, default=1.0)], left, WIDTH - right)
    bottom = len(drawn) * _ROW + 4
    rows = [piece for at, bar in enumerate(drawn) for piece in _row(bar, at * _ROW + 4, across, left)]
    return picture(bottom + _AXIS, [*_axis(across, bottom, write), *rows], title=title, kind="bars")


def _columns(drawn: Sequence[Bar]) -> tuple[float, float]:
    """Units for the names at the left, and for the labels at the right."""
    names = max((wide(bar.name) for bar in drawn), default=0.0) + _GAP
    labels = max((wide(bar.label) for bar in drawn), default=0.0) + _GAP
    return min(max(names, _LABELS[0]), _LABELS[1]), min(labels + 8, 320.0)


def _axis(across: Scale, bottom: float, write: Callable[[float], str]) -> Iterator[Markup]:
    for value in ticks(across, 5):
        x = across.at(value)
        yield element("path", d=f"M{number(x)} 0V{number(bottom)}", class_="grid")
        yield text(x, bottom + 16, write(value) if value else "0", "dim", "middle")


def _row(bar: Bar, top: float, across: Scale, left: float) -> Iterator[Markup]:
    middle, start = top + _BAR / 2, across.start
    tip = bar.tip or f"{bar.name}: {bar.label}"
    yield text(0, middle + 4, cut(bar.name, left - _GAP), tip=bar.name)
    if bar.value is None or not is_drawn(bar.value):
        yield text(start + 4, middle + 4, bar.label, "dim")
        return
    end = across.at(bar.value)
    yield element("rect", *tips(tip), x=start, y=top, width=max(end - start, 1.0), height=_BAR, class_=bar.look)
    if bar.samples:
        yield element("path", d=_strokes(bar.samples, top + _BAR + 2, across), class_="samples")
    if bar.low is not None and bar.high is not None:
        low, high = across.at(bar.low), across.at(bar.high)
        ends = "".join(f"M{number(x)} {number(top + 3)}v{number(_BAR - 6)}" for x in (low, high))
        yield element("path", d=f"M{number(low)} {number(middle)}H{number(high)}{ends}", class_="spread")
    yield text(across.end + _GAP, middle + 4, bar.label)


def _strokes(samples: Sequence[float], top: float, across: Scale) -> str:
    """A short stroke for each sample; those that would lie over one another once."""
    step = max(1, len(samples) // _SAMPLES)
    places = sorted({round(across.at(value), 1) for value in samples[::step] if is_drawn(value)})
    return "".join(f"M{number(x)} {number(top)}v5" for x in places)


def histogram(counts: Sequence[tuple[str, int]], *, title: str, look: str = "c1") -> Markup:
    """A slim row for each (name, count). The bars grow by the count's logarithm: a single element is seen among
    millions; the counts themselves stand beside them.
    """
    left = min(max((wide(name) for name, _ in counts), default=0.0) + _GAP, _LABELS[1])
    most = log10(max((count for _, count in counts), default=0) + 1) or 1.0
    room = WIDTH / 2
    rows: list[Markup] = []
    for at, (name, count) in enumerate(counts):
        y = at * _SLIM + 12
        long = max(log10(count + 1) / most * room, 1.0) if count else 0.0
        rows.append(text(left - _GAP, y, cut(name, left - _GAP), "dim", "end"))
        if count:
            box = element("rect", *tips(f"{name}: {count:,}"), x=left, y=y - 10, width=long, height=12, class_=look)
            rows.append(box)
        rows.append(text(left + long + 6, y, f"{count:,}", "" if count else "dim"))
    return picture(len(counts) * _SLIM + 6, rows, title=title, kind="histogram")
