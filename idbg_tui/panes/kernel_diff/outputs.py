"""How does an output, or a gradient, read as a row: how far is it off, where, and by which criterion?"""

from collections.abc import Sequence
from math import inf

from idbg.format.amounts import column_figure
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.diff import TensorDiff
from idbg.views.tensors import LOOKS, against, decided, one_sided, outcome, worst_words
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.panes.kernel_diff.outcomes import STYLES
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
        [worst_words(one) for one in [one for one in tensors if one.failed] or tensors],
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
    figures = [column_figure(value) for value in (diff.max_abs, rmse, against(diff))]
    start: StyledRow = [
        (f" {sign} ", style),
        (columns.named(diff.name) + " ", "strong" if diff.failed else ""),
        (fit(cut_shape(str(meta), columns.middle) if meta else "", columns.middle), "dim"),
        (columns.figured(figures), ""),
    ]
    room = columns.width - sum(len(text) for text, _ in start) - 2
    said = clip(worst_words(diff), room)
    by = decided(diff)
    if by and room - len(said) > _RULES:
        said += f"  {clip(by, room - len(said) - 2)}" if said else clip(by, room)
    return [*start, (f"  {said}", style if diff.failed else "")]


def badness(diff: TensorDiff) -> float:
    """How bad: above 1 fails; NaN, infinities and what has no figures are the worst."""
    if diff.failed_by and (one_sided(diff) or diff.max_abs is None):
        return inf
    ratios = [block.ratio for block in diff.blocks if block.ratio is not None]
    figures = ratios if diff.baseline else [diff.max_scaled or 0.0]
    return max(figures, default=0.0) + (1e6 if diff.failed_by else 0.0)


def words(diff: TensorDiff) -> str:
    """What a filter looks for in an output."""
    return " ".join((diff.name, str(diff.reference or diff.test or ""), *diff.failed_by, diff.note))
