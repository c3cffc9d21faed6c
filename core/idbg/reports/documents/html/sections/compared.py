"""Show what changed from one run to another."""

from markupsafe import Markup

from idbg.render import html
from idbg.reports import again
from idbg.reports.documents import Told
from idbg.schema.runs import Run
from idbg.views import compared

TITLE = compared.TITLE
ANCHOR = "comparison"


def section(told: Told) -> Markup | None:
    """The last run against that of the other session; of a session alone, its last run against the one before. None
    where there are not two.
    """
    pair = two_runs(told)
    if pair is None:
        return None
    (name, before), (other, after) = pair
    return html.section(compared.view(before, after, names=(name, other)), after, "difference")


def two_runs(told: Told) -> tuple[tuple[str, Run], tuple[str, Run]] | None:
    """What is compared with what, each with a name."""
    last = told.history.last
    if told.other is not None and told.other.history.last is not None and last is not None:
        first = told.other.history.last
        return (_named(told.other, first), first), (_named(told, last), last)
    if told.other is None and len(told.history.runs) > 1 and last is not None:
        first = told.history.runs[sorted(told.history.runs)[-2]]
        return (_named(told, first), first), (_named(told, last), last)
    return None


def _named(told: Told, run: Run) -> str:
    return f"run {run.number} of {told.name or 'the session'}: {again.command(run)}"
