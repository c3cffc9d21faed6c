"""How does the error grow from kernel to kernel?"""

from collections.abc import Iterator

from idbg.diff import DiffReport, KernelError
from idbg.records import NodeId
from idbg_tui import diff_list
from idbg_tui.charts import Series, log_chart
from idbg_tui.listing import Entry, sentences
from idbg_tui.signs import MARKS, VERDICT_SIGNS
from idbg_tui.widgets.lines import Row

_HEIGHT = 16
_LEAST = 1e-10  # relative errors below this are drawn at it: float64's own noise


def entries(report: DiffReport, width: int) -> list[Entry]:
    """The chart, its legend, and the figures that it was drawn from."""
    seen = [(place, one) for place, one in enumerate(report.kernels, 1) if one.error is not None]
    if not seen:
        return list(sentences("no kernel was observed: D compares every kernel of the compiled code", width, "dim"))
    good, bad, eager = MARKS["dot"], VERDICT_SIGNS["failed"], MARKS["separator"]
    series = [
        Series(
            [(place, one.eager_error or 0.0) for place, one in seen if one.eager_error is not None], eager, "fallback"
        ),
        Series([(place, one.error or 0.0) for place, one in seen if not one.bad], good, "accent"),
        Series([(place, one.error or 0.0) for place, one in seen if one.bad], bad, "reject"),
    ]
    found = [Entry(lambda _, row=row: row) for row in log_chart(series, max(width, 40), _HEIGHT, least=_LEAST)]  # type: ignore[misc]
    legend = f"relative RMSE of each kernel, in the order of launches: {good} kernel   {eager} eager   {bad} bad"
    found += sentences(legend, width, "dim")
    found += sentences("", width)
    names = diff_list.names_width(report.kernels, width)
    found.append(Entry(lambda width: diff_list.heads(True, width, names)))
    return found + list(_rows(report, names))


def _rows(report: DiffReport, names: int) -> Iterator[Entry]:
    for place, one in enumerate(report.kernels):
        culprit = place == report.first_bad_kernel

        def draw(width: int, one: KernelError = one, culprit: bool = culprit) -> Row:
            return diff_list.kernel_row(one, width, names, culprit)

        node = one.node or next(iter(one.nodes), "")
        yield Entry(draw, NodeId(one.graph, node) if one.graph and node else None, here=culprit)
