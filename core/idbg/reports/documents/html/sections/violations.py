"""Show which rules of the accelerator the program breaks."""

from markupsafe import Markup

from idbg.format.shown import clean, short
from idbg.reports.commands import ask
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Violations"
ANCHOR = "violations"


def section(session: SessionData) -> Markup:
    """Each run's violations; which command checks, where nothing was run."""
    command = short(clean(ask("check", session.history.last)), 400)
    nothing = Markup("<p>Nothing was run, so no rule was checked: <code>{}</code> checks every accelerator.</p>")
    return of_views(session, {"violations": "violation"}, lambda run: True) or nothing.format(command)
