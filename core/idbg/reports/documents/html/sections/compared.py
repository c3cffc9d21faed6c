"""Show what changed from one run to another."""

from markupsafe import Markup

from idbg.render import html
from idbg.reports import commands
from idbg.reports.documents import SessionData
from idbg.schema.runs import Run
from idbg.views import compared

TITLE = compared.TITLE
ANCHOR = "comparison"


def section(session: SessionData) -> Markup | None:
    """The last run against that of the other session; of a session alone, its last run against the one before. None
    where there are not two.
    """
    pair = two_runs(session)
    if pair is None:
        return None
    (name, before), (other, after) = pair
    return html.section(compared.view(before, after, names=(name, other)), after, "difference")


def two_runs(session: SessionData) -> tuple[tuple[str, Run], tuple[str, Run]] | None:
    """What is compared with what, each with a name."""
    last = session.history.last
    if session.other is not None and session.other.history.last is not None and last is not None:
        first = session.other.history.last
        return (_named(session.other, first), first), (_named(session, last), last)
    if session.other is None and len(session.history.runs) > 1 and last is not None:
        first = session.history.runs[sorted(session.history.runs)[-2]]
        return (_named(session, first), first), (_named(session, last), last)
    return None


def _named(session: SessionData, run: Run) -> str:
    return f"run {run.number} of {session.name or 'the session'}: {commands.command(run)}"
