"""Show what torch checks before it uses compiled code."""

from markupsafe import Markup

from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Guards"
ANCHOR = "guards"


def section(session: SessionData) -> Markup | None:
    """Each run that has guards."""
    return of_views(session, {"guards": "guards"}, lambda run: run.decided.guards)
