"""How far apart have two trainings come, step by step?"""

from collections.abc import Sequence

from idbg.format.amounts import column_figure
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg.views import steps as told
from idbg_tui.widgets.charts import Series, log_chart
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.listing import Entry, sentences

_LOWEST, _HIGHEST = 8, 16  # rows of the chart
_LEAST, _MOST = 1e-12, 1e3  # what is below or above is drawn there
_CELLS = 12  # of a figure's column


def entries(steps: TrainingSteps, test: str, width: int, screen: int) -> list[Entry]:
    """The verdict over the training, the chart of the tensor that parts (else of that which came nearest to it), its
    legend and its figures.

    `width` is in cells, `screen` in rows: the chart takes about half of them.
    """
    style = "reject" if told.LOOKS[steps.verdict] == "wrong" else ""
    lines = list(sentences(told.sentence(steps, test), width, style))
    rows = told.shown(steps)
    if not rows:
        return lines
    good, bad, eager, own = MARKS["dot"], VERDICT_SIGNS["failed"], MARKS["separator"], "+"
    series = [
        Series(_points(rows, "sensitivity"), own, "dim"),
        Series(_points(rows, "reference"), eager, "fallback"),
        Series([(row.step, row.test) for row in rows if not row.failed], good, "accent"),
        Series([(row.step, row.test) for row in rows if row.failed], bad, "reject"),
    ]
    height = max(_LOWEST, min(_HIGHEST, screen // 2 - 2))
    lines += [
        Entry.fixed(row, picture=True) for row in log_chart(series, max(width, 40), height, least=_LEAST, most=_MOST)
    ]
    legend = (
        f"{rows[0].tensor}, relative RMSE to {steps.truth}, step by step:   {good} {test}   {eager} eager   "
        f"{own} {steps.truth} begun a rounding away   {bad} beyond what is allowed"
    )
    lines += sentences(legend, width, "dim")
    lines += sentences("", width)
    heads: StyledRow = [("".join(f"{head:>{_CELLS}}" for head in told.HEADS), "dim")]
    lines.append(Entry.fixed(heads, picture=True))
    lines += [Entry.fixed(_row(row)) for row in rows]
    return lines


def _points(rows: Sequence[StepDistance], side: str) -> list[tuple[float, float]]:
    distances = ((row.step, getattr(row, side)) for row in rows)
    return [(step, distance) for step, distance in distances if distance is not None]


def _row(row: StepDistance) -> StyledRow:
    figures = (row.test, row.reference, row.sensitivity, row.allowed)
    text = f"{row.step:>{_CELLS}}" + "".join(f"{column_figure(each):>{_CELLS}}" for each in figures)
    return [(text, "reject" if row.failed else "")]
