"""How does an output, or a gradient, read as a row: how far is it off, where, and by which criterion?"""

from collections.abc import Sequence
from math import inf

from idbg.format.amounts import column_figure, figure
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.reports.because import decider
from idbg.schema.diff import Outcome, TensorDiff, Worst
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.panes.kernel_diff.outcomes import LOOKS, STYLES
from idbg_tui.widgets.cutting import cut_shape
from idbg_tui.widgets.lines import StyledRow, clip, fit

_RULES = 8  # cells, below which the rules that a tensor failed by are not begun


def tensor_columns(told: Sequence[object], width: int) -> DiffColumns:
    """Columns for the outputs and gradients in a list; in little room, figures that others tell give way."""
    tensors = [one for one in told if isinstance(one, TensorDiff)]
    most = (2,) if any(one.baseline for one in tensors) else (0,)
    return DiffColumns.of(
        [one.name for one in tensors],
        [str(one.test or one.reference or "") for one in tensors],
        [_spot(one) for one in [one for one in tensors if one.failed] or tensors],
        width,
        figures=(0, 1, 2) if width >= 96 else (0, 2) if width >= 76 else most,
    )


def heads(columns: DiffColumns) -> StyledRow:
    """The line over the columns."""
    name, middle = fit("name", columns.name), fit("shape", columns.middle)
    words = ("max |d|", "rmse", f"{MARKS['times']} eager")
    return [(clip(f"   {name} {middle}{columns.figured(words)}  worst at", columns.width), "dim")]


def tensor_row(diff: TensorDiff, columns: DiffColumns) -> StyledRow:
    """One output: how far it is off, how that compares with eager, where it is worst, and which criterion decided."""
    stands = outcome(diff)
    sign, style = VERDICT_SIGNS[LOOKS[stands]], STYLES[stands]
    meta = diff.test or diff.reference
    rmse = None if one_sided(diff) and not diff.rmse else diff.rmse
    figures = [column_figure(value) for value in (diff.max_abs, rmse, _against(diff))]
    start: StyledRow = [
        (f" {sign} ", style),
        (columns.named(diff.name) + " ", "strong" if diff.failed else ""),
        (fit(cut_shape(str(meta), columns.middle) if meta else "", columns.middle), "dim"),
        (columns.figured(figures), ""),
    ]
    room = columns.width - sum(len(text) for text, _ in start) - 2
    said = clip(_spot(diff), room)
    by = _decided(diff)
    if by and room - len(said) > _RULES:
        said += f"  {clip(by, room - len(said) - 2)}" if said else clip(by, room)
    return [*start, (f"  {said}", style if diff.failed else "")]


def outcome(diff: TensorDiff) -> Outcome:
    """What came of one tensor; `waiting` where it was not judged."""
    return "passed" if diff.passed else "failed" if diff.judged else "waiting"


def _decided(diff: TensorDiff) -> str:
    """By which criterion it failed, and how far; of one that passes, how near it came where it is not equal."""
    most = decider(diff) if diff.max_abs else None
    far = f" ({figure(most.share)} {MARKS['times']} allowed)" if most and most.measured and most.allowed > 0 else ""
    if diff.failed_by:
        first = most.by if most and most.by in diff.failed_by else diff.failed_by[0]
        others = [by for by in diff.failed_by if by != first]
        return ", ".join((f"by {first}{far if most and most.by == first else ''}", *others))
    return f"{most.by} {far.strip(' ()')}" if most and far else ""


def _against(diff: TensorDiff) -> float | None:
    """How many times as far from float64 as eager is."""
    base = diff.baseline
    if base is None or (base.rmse == 0 and diff.failed_by):
        return None
    if base.reference_rmse:
        return base.rmse / base.reference_rmse
    return inf if diff.failed_by else None


def _spot(diff: TensorDiff) -> str:
    """Where a tensor is worst, and by which values; else what is wrong with it, or that nothing is."""
    if diff.worst is not None and diff.max_abs != 0:
        return spot(diff.worst)
    if diff.test and diff.reference and diff.test != diff.reference and diff.failed_by:
        return f"{diff.test}, wanted {diff.reference}"
    return diff.note or ("equal" if diff.max_abs == 0 else "" if diff.elements else "no elements")


def spot(worst: Worst) -> str:
    """The place of an element and what it is, with as many digits as tell the two values apart."""
    place = f"[{', '.join(map(str, worst.index))}]: " if worst.index else ""
    values = ((spelled(worst.test, digits), spelled(worst.reference, digits)) for digits in (6, 9, 17))
    test, reference = next((pair for pair in values if pair[0] != pair[1]), (str(worst.test), str(worst.reference)))
    return f"{place}{test}, wanted {reference}"


def spelled(value: bool | int | float | str, digits: int = 6) -> str:
    """An element's value, a float to so many significant digits."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def badness(diff: TensorDiff) -> float:
    """How bad: above 1 fails; NaN, infinities and what has no figures are the worst."""
    if diff.failed_by and (one_sided(diff) or diff.max_abs is None):
        return inf
    ratios = [block.ratio for block in diff.blocks if block.ratio is not None]
    figures = ratios if diff.baseline else [diff.max_scaled or 0.0]
    return max(figures, default=0.0) + (1e6 if diff.failed_by else 0.0)


def one_sided(diff: TensorDiff) -> bool:
    """Whether NaN or infinities are on one side only: then RMSE and means are over the other elements."""
    return not {"nan", "inf"}.isdisjoint(diff.failed_by)


def words(diff: TensorDiff) -> str:
    """What a filter looks for in an output."""
    return " ".join((diff.name, str(diff.reference or diff.test or ""), *diff.failed_by, diff.note))
