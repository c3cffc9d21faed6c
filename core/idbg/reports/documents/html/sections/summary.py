"""What happened, and what is wrong, the worst first?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.reports import text
from idbg.reports.decisions import summary
from idbg.reports.diagnostics import Diagnostic, diagnostics
from idbg.reports.documents import Told
from idbg.reports.documents.html.templating import fill
from idbg.schema.runs import Run

TITLE = "Summary"
ANCHOR = "summary"
MOST = 25  # findings that stand here at once; the rest is folded


@dataclass
class Found:
    """One thing that is wrong, in the runs that it is wrong in."""

    first: Diagnostic
    run: Run
    runs: list[int]


def section(told: Told) -> Markup:
    """Each run in a line or two, then what is wrong of all runs, each once."""
    runs = list(told.history.runs.values())
    found: dict[str, Found] = {}
    for run in runs:
        for each in diagnostics(run):
            found.setdefault(each.key, Found(each, run, [])).runs.append(run.number)
    everything = list(found.values())
    return fill(
        "summary.html",
        runs=[(run, text.headline(run), [line.strip() for line in summary_lines(run)]) for run in runs],
        shown=everything[:MOST],
        more=everything[MOST:],
    )


def summary_lines(run: Run) -> list[str]:
    """What there is of it, in numbers."""
    return [*text.contents(run)][:1] + [*summary.text(run)][-1:]
