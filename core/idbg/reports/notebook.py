"""Show sessions, runs, comparisons and benchmarks in a notebook, by the page's own templates.

What is imported here knows no template: `fragments` is loaded when the first record is shown.
"""

from importlib import import_module

from idbg.schema import html_repr
from idbg.schema.bench import Row, Rows
from idbg.schema.diff import DiffReport
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.runs import History, Run


def of_history(history: History, name: str = "", folder: str = "") -> str:
    """A session: its runs, what is wrong, what was measured, its repros."""
    from idbg.reports.documents import SessionData

    return _fragment("session", SessionData(name, history, folder))


def of_diff(report: DiffReport) -> str:
    """A comparison, with its tables and charts."""
    return _fragment("diff", report)


def _fragment(kind: str, record: object) -> str:
    html: str = getattr(import_module("idbg.reports.documents.html.fragments"), f"of_{kind}")(record)
    return html


def register() -> None:
    """Register how the records are shown."""
    html_repr.register(History, of_history)
    html_repr.register(Run, lambda run: _fragment("run", run))
    html_repr.register(DiffReport, of_diff)
    html_repr.register(Rows, lambda rows: _fragment("rows", rows))
    html_repr.register(Row, lambda row: _fragment("rows", [row]))
    html_repr.register(KernelTimes, lambda times: _fragment("kernels", times))
