"""Draw a comparison: errors by kernel, by step, by size, and over a slice."""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from idbg.format.amounts import column_figure, counted, figure
from idbg.reports.drawings.bars import histogram
from idbg.reports.drawings.heat import heat
from idbg.reports.drawings.lines import Axis, Line, Point, lines
from idbg.schema.diff import DiffReport, ErrorMap, KernelError, TensorDiff, launch_name
from idbg.schema.steps import StepDistance, TrainingSteps
from idbg.views import error_maps
from idbg.views import steps as training_steps
from idbg.views.launches import unit_noun
from idbg.views.tensors import decades

_EQUAL, _NONFINITE = 8, 9  # classes of cells, beside those of the levels
ERROR = "relative RMSE"
_LEAST = 2  # places of which a line makes sense


def launches(report: DiffReport) -> Markup | None:
    """The error of each launch: by itself, with what came before, and eager's; None where fewer than two were observed.

    A launch that was not observed is a gap.
    """
    kernels, unit = report.kernels, unit_noun(report)
    if sum(one.error is not None for one in kernels) < _LEAST:
        return None
    alone = any(one.isolated is not None for one in kernels)
    own = [
        _line("by itself", "c1", report, lambda one: one.isolated),
        _line("eager by itself", "c3", report, lambda one: one.isolated_eager),
        _line("with what came before", "c2", report, lambda one: one.error),
        _line("eager with what came before", "c4", report, lambda one: one.eager_error),
    ]
    read = [
        _line("with what came before", "c1", report, lambda one: one.error),
        _line("of what it read", "c2", report, lambda one: one.input_error),
        _line("eager", "c3", report, lambda one: one.eager_error),
    ]
    drawn = [line for line in (own if alone else read) if any(point.y is not None for point in line.points)]
    return lines(
        drawn,
        title=f"The error of each of {counted(len(kernels), unit)}, in the order in which they are executed",
        x=Axis(unit, "{:,.0f}".format, whole=True, zero=False),
        y=Axis(f"{ERROR}; a red dot is a bad {unit}", column_figure, log=True),
    )


def _line(name: str, look: str, report: DiffReport, of: Callable[[KernelError], float | None]) -> Line:
    points = [
        Point(at, of(one), f"{at}: {launch_name(one, report.kernels)}: {name} {figure(of(one))}", _look(one, look))
        for at, one in enumerate(report.kernels, 1)
    ]
    return Line(name, points, look)


def _look(one: KernelError, look: str) -> str:
    return "bad" if one.bad and look == "c1" else ""


def training(steps: TrainingSteps, test: str) -> Markup | None:
    """How far each side's training is from float64's, step by step, of the tensor that is shown; None of fewer than two
    steps.
    """
    rows = training_steps.shown(steps)
    if len(rows) < _LEAST:
        return None
    sides: list[tuple[str, str, Callable[[StepDistance], float | None]]] = [
        (test, "c1", lambda row: row.test),
        ("eager", "c2", lambda row: row.reference),
        (f"{steps.truth} begun a rounding away", "c3", lambda row: row.sensitivity),
        ("allowed", "faint", lambda row: row.allowed),
    ]
    drawn = [_side(name, look, rows, of) for name, look, of in sides]
    return lines(
        [line for line in drawn if any(point.y is not None for point in line.points)],
        title=f"{rows[0].tensor}: {ERROR} to {steps.truth}, step by step",
        x=Axis("step", "{:,.0f}".format, whole=True, zero=False),
        y=Axis(
            f"{ERROR} of {rows[0].tensor} to {steps.truth}; a red dot is beyond what is allowed",
            column_figure,
            log=True,
        ),
    )


def _side(name: str, look: str, rows: Sequence[StepDistance], of: Callable[[StepDistance], float | None]) -> Line:
    points = [
        Point(
            row.step,
            of(row),
            f"step {row.step}: {name} {figure(of(row))}",
            "bad" if row.failed and look == "c1" else "",
        )
        for row in rows
    ]
    return Line(name, points, look, dots=look != "faint")


def by_size(diff: TensorDiff) -> Markup | None:
    """How many elements have an error of each decade; None where they were not counted."""
    counts = decades(diff.histogram)
    if not counts:
        return None
    return histogram(counts, title=f"{diff.name}: how many elements have which |test - reference|")


def error_map(of: ErrorMap) -> Markup | None:
    """The error over a slice; None where every element of it is equal."""
    if error_maps.is_equal(of):
        return None
    coolest, hottest = error_maps.ends(error_maps.top(of))
    cells = error_maps.levels(of, equal=_EQUAL, nonfinite=_NONFINITE)
    shown = {level for row in cells for level in row}
    legend = [(_EQUAL, "equal")] if _EQUAL in shown else []
    if error_maps.largest(of):
        legend += [
            (0, coolest),
            *((step, "") for step in range(1, error_maps.STEPS - 1)),
            (error_maps.STEPS - 1, hottest),
        ]
    legend += [(_NONFINITE, error_maps.NONFINITE)] if _NONFINITE in shown else []
    return heat(cells, title=error_maps.title(of), shape=of.shape, legend=legend)
