"""Summarize the session: each run in a line or two, then what is wrong, the worst first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.decisions import times
from idbg.render.html.templating import fill
from idbg.reports import text, top_findings
from idbg.reports.diagnostics import Diagnostic, badness, diagnostics
from idbg.reports.documents import SessionData
from idbg.schema.runs import Run
from idbg.views import bench, time
from idbg.views.bisection import answer_sentence
from idbg.views.blame import blame_sentence

TITLE = "Summary"
ANCHOR = "summary"
MOST = 25  # findings that stand here at once, each kind has its share; the rest is folded


@dataclass
class Found:
    """One thing that is wrong, in the runs that it is wrong in."""

    first: Diagnostic
    run: Run
    runs: list[int]


def section(session: SessionData) -> Markup:
    """Each run in a line or two, then what is wrong of all runs, each once."""
    runs = list(session.history.runs.values())
    found: dict[str, Found] = {}
    for run in runs:
        for each in top_findings.by_line(diagnostics(run)):
            found.setdefault(each.key, Found(each, run, [])).runs.append(run.number)
    shown, more = top_findings.split(sorted((each.first for each in found.values()), key=badness), MOST)
    return fill(
        "summary.html",
        missing=session.history.missing,
        measured=bench.summary(bench.latest(session.history.rows)) if session.history.rows else "",
        runs=[(run, headline(run), [line.strip() for line in summary_lines(run)]) for run in runs],
        shown=[found[each.key] for each in shown],
        more=[found[each.key] for each in more],
        more_words=top_findings.kinds(more),
        nothing=nothing(runs),
    )


def nothing(runs: Sequence[Run]) -> str:
    """What was checked without a finding, and what was not checked."""
    looked = ["failure", "graph break", "recompile"]
    unchecked = []
    for kind, is_checked, words in (
        ("violation", all(run.checked_rules for run in runs), "no rules were checked"),
        ("mismatch", all(run.diff is not None for run in runs), "the numbers were not compared"),
    ):
        looked += [kind] if is_checked else []
        unchecked += [] if is_checked else [words]
    of_some = " of each run" if len(runs) > 1 else ""
    ended = "" if all(run.verdict != "waiting" for run in runs) else " so far"
    beside = f" ({' and '.join(unchecked)}{of_some})" if unchecked else ""
    return f"No {', '.join(looked[:-1])} or {looked[-1]} is known of{ended}{beside}."


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
