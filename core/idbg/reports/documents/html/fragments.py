"""Write pieces of the page for a notebook: with their own style, and without the page's addresses."""

import re
from collections.abc import Iterator

from markupsafe import Markup

from idbg.render.html.templating import fill, static
from idbg.reports import drawings
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections import bench, diff, repros, summary, time, violations
from idbg.reports.documents.html.sections.viewed import BREAKS
from idbg.schema.bench import Row, Rows
from idbg.schema.diff import DiffReport
from idbg.schema.events import KernelsTimed
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, Run

# an attribute's value holds no quotation mark, and neither does any text: both are escaped
_LINK = re.compile(r'<a\b([^>]*?) href="#[^"]*"([^>]*)>(.*?)</a>', re.DOTALL)
_ADDRESSES = re.compile(r' (?:id|data-find|data-words|tabindex)="[^"]*"')

Part = tuple[str, Markup, bool]
"""What unfolds: its title, what is in it, whether it stands open."""


def of_session(session: SessionData) -> str:
    """What is wrong of all runs, and of the last run what a run tells; what was measured; the repros."""
    history = session.history
    parts = list(_parts(history.last)) if history.last else []
    if history.rows or history.kernels:
        parts.append((bench.TITLE, bench.section(session), False))
    if history.repros:
        parts.append((repros.TITLE, repros.section(session), False))
    return _standing(summary.section(session), parts, title=f"session {session.name}", folder=session.folder)


def of_run(run: Run) -> str:
    """What is wrong, the worst first; violations, numbers, breaks and time unfold."""
    session = SessionData("", History(runs={run.number: run}))
    return _standing(summary.section(session), list(_parts(run)))


def of_diff(report: DiffReport) -> str:
    """The verdict, the tables and the charts."""
    alone = Run(0, Program(path=""), Target(), 0.0)
    alone.diff = report
    return _standing(diff.comparison(alone, "KernelDiff(..., per_kernel=True)"))


def of_rows(rows: list[Row]) -> str:
    """The rows by program, with charts that have every sample."""
    return _standing(bench.filled(History(rows=Rows(rows))))


def of_kernels(times: KernelTimes) -> str:
    """The kernels by time, under the machine's peaks."""
    timed = KernelsTimed(program="the program", backend=times.peaks.device, times=times)
    return _standing(bench.filled(History(kernels=timed)))


def _parts(run: Run) -> Iterator[Part]:
    """What a run has to tell; the first that is wrong stands open."""
    session = SessionData("", History(runs={run.number: run}))
    wrong = run.diff is not None and run.diff.verdict == "failed"
    if run.violations:
        yield violations.TITLE, violations.section(session), not wrong
    if run.diff is not None:
        yield diff.TITLE, diff.section(session), wrong
    if run.breaks or run.recompiles:
        yield BREAKS.TITLE, BREAKS.section(session) or Markup(), False
    if (spent := time.without_trace(session)) is not None:
        yield time.TITLE, spent, False


def _standing(head: Markup, parts: list[Part] | None = None, title: str = "", folder: str = "") -> str:
    """With the style that it needs, and without what only the page has: addresses, and links to them."""
    style = Markup(f"{static('notebook.css')}\n{drawings.style()}")
    whole = str(fill("notebook.html", style=style, head=head, parts=parts or [], title=title, folder=folder))
    return _ADDRESSES.sub("", _LINK.sub(r"<span\1\2>\3</span>", whole))
