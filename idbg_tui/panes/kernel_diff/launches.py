"""How does a launch of a kernel read as a row: its error, that of what it read, and how the error has grown?"""

from collections.abc import Sequence
from dataclasses import replace
from math import log10

from idbg.format import file_names
from idbg.format.amounts import column_figure
from idbg.format.glyphs import LEVELS, MARKS, VERDICT_SIGNS
from idbg.schema.diff import KernelError, launch_name
from idbg_tui.panes.kernel_diff.columns import DiffColumns
from idbg_tui.panes.kernel_diff.outcomes import BAD, UNSEEN
from idbg_tui.widgets.lines import StyledRow, clip, cut, fit

_QUIET, _LOUD = 1e-8, 1.0  # relative errors that the growth bar shows as least and most
_LEVEL = 3  # cells of the growth bar and the blanks beside it


def kernel_columns(told: Sequence[object], width: int, more: int = 0) -> DiffColumns:
    """Columns for the kernels in a list; `more`: cells of what is said after their places."""
    kernels = [one for one in told if isinstance(one, KernelError)]
    ends = [" " * (_LEVEL + more + (2 if more else 0)) + _place(one) for one in kernels]
    columns = DiffColumns.of(
        [launch_name(one, kernels) for one in kernels], [_nodes(one) for one in kernels], ends, width, figures=(0, 1, 2)
    )
    return replace(columns, alone=any(one.isolated is not None for one in kernels))


def heads(columns: DiffColumns, *, nodes: bool = False) -> StyledRow:
    """The line over the columns; `nodes` where they are single nodes."""
    name, middle = fit("node" if nodes else "kernel", columns.name), fit("node", columns.middle)
    figures = columns.figured(("alone", "so far", "eager") if columns.alone else ("error", "inputs", "eager"))
    return [(clip(f"   {name} {middle}{figures}   line", columns.width), "dim")]


def kernel_row(one: KernelError, columns: DiffColumns, culprit: bool, said: str = "") -> StyledRow:
    """One launch: the error that it makes alone, that with all that came before (where the first is not known: that,
    and that of what it read), eager's, how the error has grown up to here, and what else is `said`.
    """
    style = BAD if one.bad else "" if one.observed else UNSEEN
    sign = VERDICT_SIGNS["failed"] if culprit else MARKS["arrow"][0] if one.bad else " "
    start = [
        (f" {sign} ", BAD if one.bad else ""),
        (columns.named(one.handle if one.handle in columns.names else one.name) + " ", "strong" if culprit else style),
        (fit(cut(_nodes(one), columns.middle), columns.middle), "dim"),
    ]
    if one.observed:
        errors = (one.isolated, one.error) if columns.alone else (one.error, one.input_error)
        figures = [column_figure(value) for value in (*errors, one.eager_error)]
        start += [(columns.figured(figures), style), (f" {level(one.error)} ", style)]
        said = "  ".join(filter(None, (_place(one), said, one.reason)))
    else:
        said = f"  not observed: {one.reason}"
    room = columns.width - sum(len(text) for text, _ in start)
    return [*start, (clip(said, room), "" if culprit else "dim")]


def _nodes(one: KernelError) -> str:
    return "" if one.node == one.name else one.node or ", ".join(one.nodes)


def _place(one: KernelError) -> str:
    return file_names.place(one.file, one.line) if one.file else ""


def level(error: float | None) -> str:
    """The error as one cell, by its decade."""
    if error is None:
        return " "
    if error <= _QUIET:
        return LEVELS[0]
    share = (log10(min(error, _LOUD)) - log10(_QUIET)) / (log10(_LOUD) - log10(_QUIET))
    return LEVELS[round(share * (len(LEVELS) - 1))]


def words(one: KernelError) -> str:
    """What a filter looks for in a launch."""
    return " ".join((one.name, one.node, *one.nodes, _place(one), one.reason))
