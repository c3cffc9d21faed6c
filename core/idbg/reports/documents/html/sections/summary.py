"""Summarize the session: each run in a line or two, then what is wrong, the worst first."""

from collections.abc import Iterator

from markupsafe import Markup

from idbg.analysis.decisions import times
from idbg.render import html
from idbg.render.html.templating import fill
from idbg.reports import text
from idbg.reports.documents import SessionData
from idbg.schema.runs import Run
from idbg.views import bench, findings, time
from idbg.views.bisection import answer_sentence
from idbg.views.blame import blame_sentence
from idbg.views.diagnostics import diagnostics, of_history

TITLE = "Summary"
ANCHOR = "summary"
MOST = 25  # findings that stand here at once, each kind has its share; the rest is folded


def section(session: SessionData) -> Markup:
    """Each run in a line or two, then what is wrong with the session, each once."""
    runs = list(session.history.runs.values())
    numbers: dict[str, list[int]] = {}
    for run in runs:
        for each in diagnostics(run):
            numbers.setdefault(each.key, []).append(run.number)
    shown, more = findings.split(findings.by_line(of_history(session.history)), MOST)
    several = numbers if len(runs) > 1 else None
    only = runs[0] if len(runs) == 1 else None  # nodes are linked where no other run can have them
    return fill(
        "summary.html",
        missing=session.history.missing,
        measured=bench.summary(bench.latest(session.history.rows)) if session.history.rows else "",
        runs=[(run, headline(run), [line.strip() for line in summary_lines(run)]) for run in runs],
        shown=html.section(findings.listed(shown, several), only, "") if shown else "",
        more=html.section(findings.listed(more, several), only, "", most=len(more)) if more else "",
        count=len(more),
        more_words=findings.kinds(more),
        nothing=findings.nothing(runs),
    )


def summary_lines(run: Run) -> list[str]:
    """Its contents in numbers, then a sentence for each question that it answers."""
    return [*[*text.contents(run)][:1], text.decision_counts(run), *sentences(run)]


def sentences(run: Run) -> Iterator[str]:
    """Where its numbers go wrong, what a bisection found, and what most of its compile's time went into."""
    if run.diff is not None and (blamed := blame_sentence(run.diff)):
        yield blamed
    if run.bisected is not None:
        yield answer_sentence(run.bisected)
    timings = times.tree(run)
    if spent := times.spent(timings):
        what = [row.text for row in time.dominating(run, timings)]
        yield "; ".join([time.headline(run, spent), *what])


def headline(run: Run) -> str:
    """The report's first line; a page closes up the blanks that part its pieces."""
    return text.headline(run).replace("   ", " · ")
