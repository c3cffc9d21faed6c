"""Show where graphs break and what was compiled again."""

from markupsafe import Markup

from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Graph breaks and recompiles"
ANCHOR = "breaks"


def section(session: SessionData) -> Markup | None:
    """Each run that compiled something."""
    names = {"breaks": "break", "recompiles": "recompile"}
    return of_views(session, names, lambda run: run.frames or run.breaks or run.decided.results)
