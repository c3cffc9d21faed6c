"""Draw the charts of benchmarks."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from markupsafe import Markup

from idbg.format.amounts import day
from idbg.reports.drawings.bars import Bar, bars
from idbg.reports.drawings.lines import Axis, Line, Point, lines
from idbg.views.bench_charts import Chart, Figure, roof_line, value_words

_LOOKS = ("c1", "c2", "c3", "c4", "c5")
_FEW = 1500  # points of a line over nodes that are drawn: more than there are pixels


def chart(drawn: Chart, samples: Sequence[Sequence[float]] = ()) -> Markup | None:
    """The chart as a picture; None where it has no figures. `samples`: what each of them was taken of."""
    if not drawn.figures:
        return None
    match drawn.axis:
        case "date":
            return _over_time(drawn)
        case "node":
            return _over_nodes(drawn)
        case "FLOPs/byte":
            return _under_roof(drawn)
        case _:
            return _bars(drawn, samples)


def _bars(drawn: Chart, samples: Sequence[Sequence[float]]) -> Markup:
    own = samples or [()] * len(drawn.figures)
    rows = [_bar(one, drawn, taken) for one, taken in zip(drawn.figures, own, strict=True)]
    return bars(rows, title=drawn.title, write=lambda value: value_words(value, drawn.unit), reach=drawn.reach)


def _bar(one: Figure, drawn: Chart, samples: Sequence[float]) -> Bar:
    words = value_words(one.value, drawn.unit)
    if one.low is not None and one.high is not None:
        words += f", {value_words(one.low, drawn.unit)} to {value_words(one.high, drawn.unit)}"
    return Bar(one.name, one.value, words, one.low, one.high, samples)


def _over_time(drawn: Chart) -> Markup:
    every = [
        Line(name, [_dated(one, drawn) for one in figures], _LOOKS[at % len(_LOOKS)])
        for at, (name, figures) in enumerate(groupby(drawn.figures, key=lambda one: one.name))
    ]
    x = Axis("date", lambda at: datetime.fromtimestamp(at).strftime("%d %b %H:%M"), zero=False, ticks=4)
    return lines(every, title=drawn.title, x=x, y=Axis("median", lambda value: value_words(value, drawn.unit)))


def _dated(one: Figure, drawn: Chart) -> Point:
    at = one.at or 0.0
    return Point(at, one.value, f"{one.name}, {day(at)}: {value_words(one.value, drawn.unit)}")


def _over_nodes(drawn: Chart) -> Markup:
    step = -(-len(drawn.figures) // _FEW)
    highest = (
        max(drawn.figures[at : at + step], key=lambda one: one.value or 0.0)
        for at in range(0, len(drawn.figures), step)
    )
    points = [Point(one.at or 0.0, one.value, f"{one.name}: {value_words(one.value, drawn.unit)}") for one in highest]
    line = Line("in use", points, dots=len(points) < 100)
    y = Axis(drawn.unit, lambda value: value_words(value, drawn.unit))
    return lines([line], title=drawn.title, x=Axis("node", "{:,.0f}".format, whole=True), y=y)


def _under_roof(drawn: Chart) -> Markup:
    points = [
        Point(one.at, one.value, f"{one.name}: {value_words(one.value, drawn.unit)} at {one.at:.3g} FLOPs a byte")
        for one in drawn.figures
        if one.at and one.value
    ]
    roof = [Point(at, value) for at, value in roof_line(drawn)]
    under = [Line("the machine's measured peaks", roof, "faint", dots=False)] if roof else []
    kernels = Line("kernels", points, "c1", joined=False)
    x = Axis("FLOPs a byte", "{:g}".format, log=True)
    return lines([*under, kernels], title=drawn.title, x=x, y=Axis(drawn.unit, "{:g}".format, log=True))
