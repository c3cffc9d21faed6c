"""Show where the time of a compile went."""

from markupsafe import Markup

from idbg.reports.documents import Told
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Compile time"
ANCHOR = "time"


def section(told: Told) -> Markup | None:
    """Each run whose time is known."""
    return of_views(told, {"time": "span"}, lambda run: run.decided.spans or run.phases)
