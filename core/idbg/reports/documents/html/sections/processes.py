"""Show the processes of the session beside its main one, and how each ended."""

from markupsafe import Markup

from idbg.render import html
from idbg.reports.documents import SessionData
from idbg.views.processes import listed

TITLE = "Processes"
ANCHOR = "processes"


def section(session: SessionData) -> Markup | None:
    """A row each; None where there is one process."""
    found = listed(session.history.processes.values())
    return html.section(found, None, "process") if found.count else None
