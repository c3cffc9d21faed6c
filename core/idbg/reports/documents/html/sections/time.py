"""Where did the time of a compile go, and what helps?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.decisions import times
from idbg.format.amounts import share
from idbg.reports import bench_plots
from idbg.reports.decisions import time as told_time
from idbg.reports.decisions.time import WORDS, seconds_words
from idbg.reports.documents import Told
from idbg.reports.documents.html.templating import fill
from idbg.reports.drawings import of_bench, of_time
from idbg.schema.runs import Run

TITLE = "Compile time"
ANCHOR = "time"


@dataclass(frozen=True)
class TimeTold:
    """One run: a headline, what dominates and what helps; the flame, or, of a session that was not told span by span,
    its phases.
    """

    run: Run
    headline: str
    helps: list[str]
    flame: Markup | None
    spent: list[tuple[str, str, str, str]]
    phases: Markup | None
    phases_title: str
    whole: list[str]


def section(told: Told) -> Markup | None:
    """Each run of which something is known; None of none."""
    runs = list(told.history.runs.values())
    timed = [of_run(run) for run in runs if run.decided.spans or run.phases]
    return fill("time.html", timed=timed, runs=runs) if timed else None


def of_run(run: Run) -> TimeTold:
    """Where the time of this run's compile went."""
    timings = times.tree(run)
    spent = times.spent(timings)
    chart = bench_plots.phases(run.phases, f"run {run.number} ({run.target.backend})")
    return TimeTold(
        run=run,
        headline=told_time.headline(run, spent) if spent else "",
        helps=[line.strip() for line in told_time.dominating(run, timings)],
        flame=of_time.compile_flame(run, timings),
        spent=[
            (of_time.look(each.use), WORDS[each.use], seconds_words(each.seconds), share(each.share)) for each in spent
        ],
        phases=None if spent else of_bench.chart(chart),
        phases_title=chart.title,
        whole=list(told_time.text(run)) if spent else [],
    )
