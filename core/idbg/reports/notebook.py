"""How do a session, a run, a comparison and a benchmark show themselves in a notebook? By the page's own templates.

What is imported here knows no template: those are loaded when the first record is drawn.
"""

from collections.abc import Sequence

from idbg.schema import html_repr
from idbg.schema.bench import Row, Rows
from idbg.schema.diff import DiffReport
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.runs import History, Run


def of_history(history: History, name: str = "", folder: str = "") -> str:
    """A session: its runs, what is wrong, what was measured, its repros."""
    from idbg.reports.documents import SessionData
    from idbg.reports.documents.html import fragments

    return fragments.of_session(SessionData(name, history, folder))


def of_run(run: Run) -> str:
    """A run: what is wrong; its violations, numbers, breaks and time unfold."""
    from idbg.reports.documents.html import fragments

    return fragments.of_run(run)


def of_diff(report: DiffReport) -> str:
    """A comparison, with its tables and charts."""
    from idbg.reports.documents.html import fragments

    return fragments.of_diff(report)


def of_rows(rows: Sequence[Row]) -> str:
    """Benchmark rows, with every sample."""
    from idbg.reports.documents.html import fragments

    return fragments.of_rows(list(rows))


def of_kernels(times: KernelTimes) -> str:
    """What each kernel of a program takes."""
    from idbg.reports.documents.html import fragments

    return fragments.of_kernels(times)


def register() -> None:
    """Have the records drawn."""
    html_repr.register(History, of_history)
    html_repr.register(Run, of_run)
    html_repr.register(DiffReport, of_diff)
    html_repr.register(Rows, of_rows)
    html_repr.register(Row, lambda row: of_rows([row]))
    html_repr.register(KernelTimes, of_kernels)
