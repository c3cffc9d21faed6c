"""Show which rules of the accelerator the program breaks."""

from markupsafe import Markup

from idbg.format.shown import clean, short
from idbg.reports.again import ask
from idbg.reports.documents import Told
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Violations"
ANCHOR = "violations"


def section(told: Told) -> Markup:
    """Each run's violations; which command checks, where nothing was run."""
    command = short(clean(ask("check", told.history.last)), 400)
    nothing = Markup("<p>Nothing was run, so no rule was checked: <code>{}</code> checks every accelerator.</p>")
    return of_views(told, {"violations": "violation"}, lambda run: True) or nothing.format(command)
