"""Draw the section about the numbers for every run of a session, with its pictures."""

from collections.abc import Iterator
from typing import cast

from markupsafe import Markup

from idbg.format.shown import clean, short
from idbg.render import html
from idbg.reports.commands import ask
from idbg.reports.documents import SessionData
from idbg.reports.drawings import of_diff
from idbg.schema.diff import DiffReport, ErrorMap, TensorDiff
from idbg.schema.runs import Run
from idbg.schema.steps import TrainingSteps
from idbg.views import diff

TITLE = diff.TITLE
ANCHOR = "numbers"
_MOST = 2000  # launches, of which large models have many
_DRAWINGS: html.Drawings = {
    "launches": lambda data: of_diff.launches(cast("DiffReport", data)),
    "training": lambda data: of_diff.training(*cast("tuple[TrainingSteps, str]", data)),
    "histogram": lambda data: of_diff.by_size(cast("TensorDiff", data)),
    "error map": lambda data: of_diff.error_map(cast("ErrorMap", data)),
}


def section(session: SessionData) -> Markup:
    """Each run that was compared, or should have been; where none was, which command does that."""
    runs = list(session.history.runs.values())
    return Markup("\n").join(_parts(runs))


def _parts(runs: list[Run]) -> Iterator[Markup]:
    compared = [run for run in runs if run.diff is not None or run.comparison is not None]
    for run in compared:
        if len(runs) > 1:
            yield Markup("<h3>Run {}: {}</h3>").format(run.number, short(clean(run.program.label)))
        yield comparison(run, ask("diff", run, "--per-kernel"))
    if not compared:
        command = ask("diff", runs[-1] if runs else None)
        text = "<p>{}: <code>{}</code> compares them with eager and float64, <code>--per-kernel</code> each stage</p>"
        yield Markup(text).format(diff.NOT_COMPARED, short(clean(command)))


def comparison(run: Run, to_ask: str) -> Markup:
    """The section of one run; `to_ask` finds out where it goes wrong, if it did not."""
    made = diff.view(run, to_ask=f"`{to_ask}`")
    return html.section(made, run, "", _DRAWINGS, _MOST)
