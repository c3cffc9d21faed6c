"""Draw a comparison's charts in cells: errors over launches and steps, a histogram, a map of a slice's errors."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import cast

from msgspec.structs import replace

from idbg.format.glyphs import LEVELS, MARKS, VERDICT_SIGNS
from idbg.schema.diff import LARGEST, DiffReport, ErrorMap, TensorDiff
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg.views import error_maps, steps
from idbg.views.tensors import decades
from idbg.views.tree import Chart
from idbg_tui.widgets.charts import Series, log_chart
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.section_rows import Look, Row, picture, text_rows

_LOWEST, _HIGHEST = 8, 16  # rows of a chart
_LEAST, _MOST = 1e-12, 1e3  # what is below or above, NaN and infinities too, is drawn there
_LEAST_LAUNCH = 1e-10  # of a launch: float64's own noise
_INSET = "     "  # of a picture that stands below its row
_LABEL, _COUNT, _BAR = 20, 14, 50  # cells of a histogram's label, count and longest bar
# from least to most; each differs from its neighbours in brightness too
RAMP = ("#20204a", "#3b2f80", "#6b3fa0", "#a0409a", "#d04a78", "#ee6c4d", "#f9a03f", "#fce27a")
_EQUAL = "#101018"
_NONFINITE = "#ffffff"
assert len(RAMP) == error_maps.STEPS


def drawn(chart: Chart, look: Look, *, colours: bool = True) -> list[Row]:
    """The picture of one output."""
    if chart.name == "histogram":
        return histogram(cast("TensorDiff", chart.data), look)
    return error_map(cast("ErrorMap", chart.data), look, colours=colours)


# ---------------------------------------------------------------- errors over launches and steps


def launches(report: DiffReport, look: Look, screen: int) -> list[Row]:
    """The relative error of each launch and eager's, with a legend; `screen` is in rows, of which it takes a half."""
    observed = [(place, one) for place, one in enumerate(report.kernels, 1) if one.error is not None]
    good, bad, eager = MARKS["dot"], VERDICT_SIGNS["failed"], MARKS["separator"]
    series = [
        Series([(at, one.eager_error) for at, one in observed if one.eager_error is not None], eager, "fallback"),
        Series([(at, one.error or 0.0) for at, one in observed if not one.bad], good, "accent"),
        Series([(at, one.error or 0.0) for at, one in observed if one.bad], bad, "reject"),
    ]
    legend = f"relative RMSE, launch by launch:   {good} kernel   {eager} eager   {bad} bad"
    return _log_chart(series, legend, look, screen, _LEAST_LAUNCH)


def training(trained: TrainingSteps, test: str, look: Look, screen: int) -> list[Row]:
    """The distances of the tensor that parts, else of the one that came nearest to it, with a legend."""
    rows = steps.shown(trained)
    good, bad, eager, own = MARKS["dot"], VERDICT_SIGNS["failed"], MARKS["separator"], "+"
    series = [
        Series(_points(rows, "sensitivity"), own, "dim"),
        Series(_points(rows, "reference"), eager, "fallback"),
        Series([(row.step, row.test) for row in rows if not row.failed], good, "accent"),
        Series([(row.step, row.test) for row in rows if row.failed], bad, "reject"),
    ]
    legend = (
        f"{rows[0].tensor}, relative RMSE to {trained.truth}, step by step:   {good} {test}   {eager} eager   "
        f"{own} {trained.truth} begun a rounding away   {bad} beyond what is allowed"
    )
    return _log_chart(series, legend, look, screen, _LEAST)


def _log_chart(series: Sequence[Series], legend: str, look: Look, screen: int, least: float) -> list[Row]:
    height = max(_LOWEST, min(_HIGHEST, screen // 2 - 2))
    chart = picture(log_chart(series, max(look.width, 40), height, least=least, most=_MOST))
    return [*chart, *text_rows(legend, look, key=("legend", legend), style="dim"), *text_rows("", look, key=None)]


def _points(rows: Sequence[StepDistance], side: str) -> list[tuple[float, float]]:
    distances = ((row.step, getattr(row, side)) for row in rows)
    return [(step, distance) for step, distance in distances if distance is not None]


# ---------------------------------------------------------------- how many elements have which error


def histogram(diff: TensorDiff, look: Look) -> list[Row]:
    """A bar for each decade, from the first to the last that has elements."""
    most = max(diff.histogram)
    longest = max(1, min(_BAR, look.width - len(_INSET) - _LABEL - _COUNT - 1))
    rows: list[StyledRow] = [[(f"{_INSET}{'|test - reference|':<{_LABEL}}elements", "dim")]]
    for name, count in decades(diff.histogram):
        bar = MARKS["rule"][0] * (max(1, round(longest * count / most)) if count else 0)
        rows.append([(f"{_INSET}{name:<{_LABEL}}", "dim"), (f"{count:>{_COUNT - 1},} ", ""), (bar, "accent")])
    return picture(rows)


# ---------------------------------------------------------------- the errors of a slice


def error_map(found: ErrorMap, look: Look, *, colours: bool = True) -> list[Row]:
    """Which slice it is, its cells from cold to hot, and what their colours stand for."""
    found = _narrowed(found, look.width - len(_INSET))
    head: StyledRow = [(f"{_INSET}{error_maps.title(found)}", "strong")]
    if error_maps.is_equal(found):
        return picture([head, [(f"{_INSET}{error_maps.EQUAL}", "dim")]])
    high = error_maps.top(found)
    cells = _halves(found, high) if colours else _plain(found, high)
    return picture([head, *([(_INSET, ""), *row] for row in cells), _legend(found, high, colours)])


def _narrowed(found: ErrorMap, width: int) -> ErrorMap:
    """The map in at most `width` cells: the largest of neighbours stands for them."""
    step = ceil(len(found.cells[0]) / max(1, width - 1))
    cells = tuple(tuple(max(row[at : at + step]) for at in range(0, len(row), step)) for row in found.cells)
    return replace(found, cells=cells)


def _colour(value: float, high: int) -> str:
    if value == 0:
        return _EQUAL
    return _NONFINITE if value >= LARGEST else RAMP[error_maps.level(value, high)]


def _halves(found: ErrorMap, high: int) -> Iterator[StyledRow]:
    """Two rows of cells in one line: the upper is the colour of the sign, the lower the one behind it."""
    blank = (0.0,) * len(found.cells[0])
    for at in range(0, len(found.cells), 2):
        upper, lower = found.cells[at], found.cells[at + 1] if at + 1 < len(found.cells) else blank
        yield [
            ("▀", f"{_colour(one, high)} on {_colour(other, high)}") for one, other in zip(upper, lower, strict=True)
        ]


def _plain(found: ErrorMap, high: int) -> Iterator[StyledRow]:
    for cells in found.cells:
        signs = (
            " " if not cell else "!" if cell >= LARGEST else LEVELS[error_maps.level(cell, high)] for cell in cells
        )
        yield [("".join(signs), "")]


def _legend(found: ErrorMap, high: int, colours: bool) -> StyledRow:
    steps: StyledRow = [("▀", f"{colour} on {colour}") for colour in RAMP] if colours else [("".join(LEVELS), "")]
    coolest, hottest = error_maps.ends(high)
    ramp: StyledRow = [(f"{_INSET}{coolest} ", "dim"), *steps, (f" {hottest}", "dim")]
    if not error_maps.has_nonfinite(found):
        return ramp
    sign = ("▀", f"{_NONFINITE} on {_NONFINITE}") if colours else ("!", "")
    lead = ramp if error_maps.largest(found) else [(_INSET, "")]
    return [*lead, (" ", ""), sign, (f" {error_maps.NONFINITE}", "dim")]
