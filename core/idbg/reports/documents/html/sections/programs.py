"""What was compiled, for what, and how did each run go?"""

from markupsafe import Markup

from idbg.reports import text
from idbg.reports.documents import Told
from idbg.reports.documents.html.sections.summary import headline
from idbg.reports.documents.html.templating import fill

TITLE = "Programs and runs"
ANCHOR = "programs"


def section(told: Told) -> Markup | None:
    """Each run as `idbg run` tells it."""
    runs = list(told.history.runs.values())
    if not runs:
        return None
    return fill("programs.html", runs=[(run, headline(run), text.run_report(run)[1:]) for run in runs])
