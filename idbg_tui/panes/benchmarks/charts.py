"""Draw the benchmark charts in cells, or list their numbers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil, floor, log10

from idbg.format.amounts import NOT_MEASURED, day
from idbg.format.glyphs import LEVELS, MARKS, is_plain, plain
from idbg.schema.bench import Latency
from idbg.views import bench, bench_charts
from idbg.views.bench_charts import Axis, Chart, Figure, Unit, value_words
from idbg.views.tree import Chart as SectionChart
from idbg.views.tree import Section
from idbg_tui.panes.benchmarks.rows import measured_now
from idbg_tui.state import measurements
from idbg_tui.state.state import State
from idbg_tui.widgets import charts, sections
from idbg_tui.widgets.lines import StyledRow, clip, cut
from idbg_tui.widgets.section_rows import Look, Row, fixed, picture, sentences

_TIGHT = 6  # bars; more have no row between them
_JOINED = 24  # points of a line, that a dotted line joins; more are close enough
_LINES = 14  # rows of a chart over time
_BINS = 30
_COLUMNS = 60  # of memory over nodes: plotext takes 0.1 ms for each
_BIN_ROWS = 8
_STYLES = ("accent", "fallback", "clean", "pad", "reject")


def _phases(state: State) -> Chart:
    run = state.shown or state.run
    return bench_charts.phases(run.phases if run else {}, f"run {run.number} ({run.backend})" if run else "")


def _history(state: State) -> Chart:
    known = {measurements.key(row): row for row in (*(state.measurements.past.rows or ()), *state.history.rows)}
    return bench_charts.history(known.values())


def _memory(state: State) -> Chart:
    profile = state.costs.profile(state.graph) if state.graph else None
    return bench_charts.memory(state.graph, profile.live_bytes if profile else ())


def _kernels(state: State) -> Chart:
    return bench_charts.kernels(state.history.kernels)


_KEYS = {"phases": "r compiles", "kernels": "R times them", "roofline": "R times them", "memory": "r compiles"}
CHARTS: tuple[Callable[[State], Chart], ...] = (
    lambda state: bench_charts.latency(bench.latest(state.history.rows)),
    lambda state: bench_charts.speedup(bench.latest(state.history.rows)),
    lambda state: bench_charts.compile_time(bench.latest(state.history.rows)),
    _phases,
    _kernels,
    lambda state: bench_charts.roofline(state.history.kernels),
    _memory,
    _history,
)


def rows(state: State, place: int, look: Look, *, numbers: bool) -> list[Row]:
    """One of the charts, or its numbers as a table."""
    chart = CHARTS[place](state)
    title = f"{place + 1} of {len(CHARTS)}   {chart.title}"
    head = [*sentences(title, look, "strong"), *sentences("", look)]
    if not chart.figures:
        how = f"in progress, {measured_now(state)}" if state.measuring else _KEYS.get(chart.name, "B measures")
        return [*head, *sentences(f"{chart.empty}: {how}", look, "dim")]
    if numbers:
        return [*head, *_table(chart)]
    return [*head, *picture(drawn(chart, look.width))]


def drawn(chart: Chart, width: int) -> list[StyledRow]:
    """The chart, which has figures, in rows of at most `width` cells."""
    return _DRAWN[chart.axis](chart, width)


def measurement(section: Section, look: Look) -> Sequence[Row]:
    """All of one measurement, its samples as a histogram."""
    return sections.rows(section, look, _samples)


def _samples(chart: SectionChart, look: Look) -> Sequence[Row]:
    return picture(histogram(chart.data.samples, look.width)) if isinstance(chart.data, Latency) else []


def first_with_figures(state: State, place: int) -> int:
    """The chart at `place` if it has something to show, else the next that has; `place` if none does."""
    places = [(place + step) % len(CHARTS) for step in range(len(CHARTS))]
    return next((at for at in places if CHARTS[at](state).figures), place)


def last_measured(state: State) -> tuple[object, int]:
    """The last measurement there is, a row or the times of kernels, and the place of its chart; None and the first."""
    rows, kernels = state.history.rows, state.history.kernels
    if kernels is not None and kernels.times is not None and (not rows or rows[-1].at <= kernels.at):
        return kernels, CHARTS.index(_kernels)
    return rows[-1] if rows else None, 0


def _table(chart: Chart) -> Iterator[Row]:
    heads, rows = bench_charts.table(chart)
    cells = [heads, *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    for place, (name, *others) in enumerate(cells):
        figures = "".join(f"   {text:>{width}}" for text, width in zip(others, widths[1:], strict=True))
        yield Row(("numbers", place), fixed([(f" {name:<{widths[0]}}{figures}", "" if place else "dim")]))


def _cell(value: str | float | None) -> str:
    return NOT_MEASURED if value is None else value if isinstance(value, str) else f"{value:.6g}"


# ---------------------------------------------------------------- drawn by plotext


def bars(chart: Chart, width: int) -> list[StyledRow]:
    """A bar each with its figure, from the top down, to a dot at its value: paler from `low` on, a line to `high`."""
    named = [(one, f"{one.name}  {value_words(one.value, chart.unit)}") for one in chart.figures]
    room = max(24, width // 2)
    labels = [_label(one, text, room) for one, text in named]
    step = 1 if len(labels) > _TIGHT else 2
    tops = [(len(labels) - at) * step - 1 for at in range(len(labels))]
    most = chart.reach
    plain_set = is_plain()
    bar, spread, dot, pale = LEVELS[-1], "=" if plain_set else "━", MARKS["dot"], "#" if plain_set else "▒"
    figure = charts.blank(width, len(labels) * step + (1 if step > 1 else 0) + 3)
    for one, top in zip(chart.figures, tops, strict=True):
        if one.value is None:
            continue
        figure.draw(figure.segment((0.0, one.value), (top, top), marker=bar))
        if one.low is not None and one.high is not None:
            figure.draw(figure.segment((one.low, one.value), (top, top), marker=pale))
            figure.draw(figure.segment((one.value, min(one.high, most)), (top, top), marker=spread))
            figure.draw(figure.signal([one.value], [top], marker=dot))
    figure.ruler("y").lim(0, len(labels) * step - (1 if step == 1 else 0))
    figure.ruler("y").ticks(tops, labels)
    _ticks("x", 0.0, most, max(2, (width - max(map(len, labels))) // 14), chart.unit)
    drawn = charts.built({bar: "accent", pale: "accent", spread: "fallback", dot: "strong"})
    return [*drawn, [(plain(clip(f" {chart.beyond}", width)), "dim")]] if chart.beyond else drawn


def _label(one: Figure, text: str, room: int) -> str:
    return plain(text if len(text) <= room else cut(one.name, room - len(text) + len(one.name)) + text[len(one.name) :])


def over_time(chart: Chart, width: int) -> list[StyledRow]:
    """A line each with its own mark, and a legend below. Of points that nearly touch the last is drawn."""
    dots = [MARKS["dot"], *"x+o%abcdefghijkl"]
    lines = {name: list(points) for name, points in groupby(chart.figures, key=lambda one: one.name)}
    marks = {name: dots[at % len(dots)] for at, name in enumerate(lines)}
    styles = {dot: _STYLES[at % len(_STYLES)] for at, dot in enumerate(dots)}
    times = [one.at or 0.0 for one in chart.figures]
    first, last = min(times), max(times)
    figure = charts.blank(width, _LINES)
    for name, points in lines.items():
        seen = {int(width / 2 * ((one.at or 0.0) - first) / (last - first or 1.0)): one for one in points}.values()
        drawn = [one.at or 0.0 for one in seen], [one.value or 0.0 for one in seen]
        if 1 < len(seen) <= _JOINED:
            figure.draw(figure.signal(*drawn, marker=MARKS["separator"]).lines(True))
        figure.draw(figure.signal(*drawn, marker=marks[name]))
    _ticks("y", 0.0, max(one.value or 0.0 for one in chart.figures), 5, chart.unit)
    aside = max(60.0, 0.04 * (last - first))
    figure.ruler("x").lim(first - aside, last + aside)
    days = {day(first + (last - first) * part / 3): first + (last - first) * part / 3 for part in range(4)}
    figure.ruler("x").ticks([*days.values()], [*days])
    return [*charts.built(styles), *_legend(marks, styles, width)]


def _legend(marks: Mapping[str, str], styles: Mapping[str, str], width: int) -> Iterator[StyledRow]:
    """Each mark with the name of its line, in as many rows of `width` cells as it takes."""
    row: list[tuple[str, str]] = []
    for name, dot in marks.items():
        text = clip(f"  {dot} {name}", width)
        if row and sum(len(other) for other, _ in row) + len(text) > width:
            yield row
            row = []
        row.append((text, styles[dot]))
    yield row


def over_nodes(chart: Chart, width: int) -> list[StyledRow]:
    """Memory over the graph's nodes: each column of the chart has the most bytes in use at the nodes that it covers."""
    cells = min(_COLUMNS, max(10, width - 14))
    most = [0.0] * min(cells, len(chart.figures))
    for place, one in enumerate(chart.figures):
        cell = place * len(most) // len(chart.figures)
        most[cell] = max(most[cell], one.value or 0.0)
    figure = charts.blank(width, _LINES)
    figure.draw(figure.bar([at + 0.5 for at in range(len(most))], most, width=0.99, marker=LEVELS[-1]))
    figure.ruler("x").lim(0, len(most))
    last = len(chart.figures) - 1
    figure.ruler("x").ticks([0.5, len(most) - 0.5], [chart.figures[0].name, chart.figures[last].name])
    _ticks("y", 0.0, max(most), 5, chart.unit)
    return charts.built({LEVELS[-1]: "accent"})


def under_roof(chart: Chart, width: int) -> list[StyledRow]:
    """A roofline: each kernel's FLOP/s over its FLOPs a byte, both axes by powers of ten, under the machine's peaks."""
    points = [(log10(one.at), log10(one.value)) for one in chart.figures if one.at and one.value]
    roof = [(log10(at), log10(value)) for at, value in bench_charts.roof_line(chart)]
    both = [*points, *roof]
    figure = charts.blank(width, _LINES + 4)
    line, dot = MARKS["separator"], MARKS["dot"]
    if roof:
        figure.draw(figure.signal([at for at, _ in roof], [value for _, value in roof], marker=line).lines(True))
    figure.draw(figure.signal([at for at, _ in points], [value for _, value in points], marker=dot))
    for axis, of in (("x", [at for at, _ in both]), ("y", [value for _, value in both])):
        low, high = floor(min(of)), ceil(max(of))
        ruler = figure.ruler(axis)
        ruler.lim(low, high)
        ruler.ticks([*range(low, high + 1)], [f"{10.0**power:g}" for power in range(low, high + 1)])
    legend = f"  {dot} a kernel: GFLOP/s over FLOPs a byte"
    if chart.roof:
        legend += f"   {line} a copy's {chart.roof[0]:,.3g} GB/s, a matmul's {chart.roof[1]:,.4g} GFLOP/s"
    return [*charts.built({dot: "accent", line: "fallback"}), [(clip(legend, width), "dim")]]


def histogram(samples: Sequence[float], width: int) -> list[StyledRow]:
    """How many of the samples (in milliseconds) took how long, as bars."""
    low, high = min(samples), max(samples)
    bins = min(_BINS, max(5, len(samples) // 2))
    step = (high - low) / bins or 1.0
    counts = Counter(min(bins - 1, int((one - low) / step)) for one in samples)
    figure = charts.blank(min(width, 100), _BIN_ROWS + 3)
    figure.draw(figure.bar([at + 0.5 for at in counts], [*counts.values()], width=0.99, marker=LEVELS[-1]))
    figure.ruler("x").lim(0, bins)
    places = range(0, bins + 1, max(1, bins // 5))
    figure.ruler("x").ticks([*places], [plain(value_words(low + place * step, "ms")) for place in places])
    most = max(counts.values())
    figure.ruler("y").lim(0, most)
    figure.ruler("y").ticks([0, most], ["0", str(most)])
    return charts.built({LEVELS[-1]: "accent"})


_DRAWN: Mapping[Axis, Callable[[Chart, int], list[StyledRow]]] = {
    "": bars,
    "date": over_time,
    "node": over_nodes,
    "FLOPs/byte": under_roof,
}


def _ticks(axis: str, low: float, high: float, wanted: int, unit: Unit) -> None:
    """An axis from `low` to a little over `high`, with round figures."""
    rough = (high - low) / wanted or 1.0
    power = 10.0 ** floor(log10(rough))
    step = next(power * part for part in (1, 2, 5, 10) if power * part >= rough)
    places = [step * at for at in range(ceil((high - low) / step) + 1) if step * at <= high * 1.02]
    import plotext

    ruler = plotext.figure.ruler(axis)
    ruler.lim(low, high * 1.04)
    ruler.ticks(places, [plain(value_words(place, unit)) if place else "0" for place in places])
