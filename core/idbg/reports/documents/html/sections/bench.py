"""Show what compiling buys, with how much noise, and where the time of a call goes."""

from markupsafe import Markup

from idbg.format.amounts import counted
from idbg.format.shown import clean, short
from idbg.render import html
from idbg.reports.commands import ask
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import DRAWINGS
from idbg.schema.runs import History
from idbg.views import bench, bench_charts, kernel_times
from idbg.views.tree import Chart, Section

TITLE = "Benchmarks"
ANCHOR = "benchmarks"
_COMMAND = Markup('<p class="dim">{} <code>{}</code></p>')


def section(session: SessionData) -> Markup:
    """The rows by program with their charts; the kernels' times; which command measures, where nothing was."""
    return filled(session.history)


def filled(history: History) -> Markup:
    """What was measured in this session."""
    parts = []
    if history.rows:
        parts.append(html.section(bench.view(history.rows, everything=True), None, "measurement", DRAWINGS))
    if history.rows_left > 0:
        left = counted(history.rows_left, "more row")
        parts.append(Markup("<p>{} not measured when this was written.</p>").format(left))
    if history.kernels is not None:
        parts.append(_kernels(history))
    elif history.rows:
        parts.append(_command("The time of each kernel was not measured:", ask("bench", history.last, "--kernels")))
    return Markup("\n").join(parts) or _command("Nothing was measured:", ask("bench", history.last))


def _command(why: str, command: str) -> Markup:
    return _COMMAND.format(why, short(clean(command), 400))


def _kernels(history: History) -> Markup:
    timed = history.kernels
    assert timed is not None
    made = kernel_times.of_event(timed)
    charts = [Chart("bench", (of(timed), ()), of(timed).title) for of in (bench_charts.kernels, bench_charts.roofline)]
    made = Section(made.title, made.summary, made.count, made.verdict, (*made.body, *charts))
    title = Markup("<h3>Kernels of {} on {}</h3>").format(short(clean(timed.program)), short(clean(timed.backend)))
    return title + html.section(made, None, "time", DRAWINGS)
