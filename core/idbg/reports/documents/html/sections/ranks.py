"""The ranks of a distributed job: what stopped it, where they differ first, and their compiles side by side."""

from markupsafe import Markup

from idbg.render import html
from idbg.reports.documents import SessionData
from idbg.views import ranks

TITLE, ANCHOR = "Ranks", "ranks"


def section(session: SessionData) -> Markup | None:
    """What the screen shows of them."""
    found = session.history.ranks
    return html.section(ranks.view(found), None, "rank") if found is not None else None
