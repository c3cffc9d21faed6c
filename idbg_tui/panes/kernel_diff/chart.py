"""How does the error grow from kernel to kernel?"""

from collections.abc import Iterator
from functools import cache

from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.schema.diff import DiffReport, KernelError
from idbg.schema.graphs import NodeId
from idbg.views.launches import is_bisected, kernels_sentence
from idbg_tui.panes.kernel_diff import launches
from idbg_tui.widgets.charts import Series, log_chart
from idbg_tui.widgets.lines import StyledRow
from idbg_tui.widgets.listing import Entry, sentences

_LOWEST, _HIGHEST = 8, 16  # rows of the chart
_LEAST = 1e-10  # relative errors below this are drawn at it: float64's own noise
_MOST = 1e3  # and those above at this, NaN and infinities too


def entries(report: DiffReport, width: int, screen: int) -> list[Entry]:
    """The verdict over the kernels, the chart, its legend, and the figures that it draws, kernel by kernel.

    `width` is in cells, `screen` in rows: the chart takes about half of them.
    """
    seen = [(place, one) for place, one in enumerate(report.kernels, 1) if one.error is not None]
    if not seen:
        why = f"{kernels_sentence(report)}: the list says why" if report.kernels else "D compares every kernel"
        return list(sentences(why, width, "dim"))
    good, bad, eager = MARKS["dot"], VERDICT_SIGNS["failed"], MARKS["separator"]
    series = [
        Series(
            [(place, one.eager_error or 0.0) for place, one in seen if one.eager_error is not None], eager, "fallback"
        ),
        Series([(place, one.error or 0.0) for place, one in seen if not one.bad], good, "accent"),
        Series([(place, one.error or 0.0) for place, one in seen if one.bad], bad, "reject"),
    ]
    lines = list(_verdict(report, [one for _, one in seen], width))
    height = max(_LOWEST, min(_HIGHEST, screen // 2 - 2))
    chart = log_chart(series, max(width, 40), height, least=_LEAST, most=_MOST)
    lines += [Entry.fixed(row, picture=True) for row in chart]
    legend = f"relative RMSE, launch by launch:   {good} kernel   {eager} eager   {bad} bad"
    lines += sentences(legend, width, "dim")
    lines += sentences("", width)
    columns = cache(lambda width: launches.kernel_columns(report.kernels, width))
    lines.append(Entry(lambda width: launches.heads(columns(width), nodes=is_bisected(report)), picture=True))
    for place, one in enumerate(report.kernels):
        culprit = place == report.first_bad_kernel

        def draw(width: int, one: KernelError = one, culprit: bool = culprit) -> StyledRow:
            return launches.kernel_row(one, columns(width), culprit)

        lines.append(Entry(draw, _node(one)))
    return lines


def _verdict(report: DiffReport, seen: list[KernelError], width: int) -> Iterator[Entry]:
    """The verdict over the kernels. It leads to the first bad one, else to the largest error: the cursor is here."""
    bad = report.culprit
    shown = bad or max(seen, key=lambda one: one.error or 0.0)
    first, *more = sentences(kernels_sentence(report), width, "reject" if bad else "")
    return iter([Entry(first.draw, _node(shown), here=True), *more])


def _node(one: KernelError) -> NodeId | None:
    node = one.node or next(iter(one.nodes), "")
    return NodeId(one.graph, node) if one.graph and node else None
