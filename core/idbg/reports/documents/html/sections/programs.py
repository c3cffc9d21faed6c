"""What was compiled, for what, and how did each run go?"""

from markupsafe import Markup

from idbg.format.amounts import duration
from idbg.reports import text
from idbg.reports.documents import Told
from idbg.reports.documents.html.templating import fill
from idbg.schema.runs import Run

TITLE = "Programs and runs"
ANCHOR = "programs"
PHASES = 12


def section(told: Told) -> Markup | None:
    """Each run as `idbg run` tells it."""
    runs = list(told.history.runs.values())
    if not runs:
        return None
    return fill("programs.html", runs=[(run, text.run_report(run), longest_phases(run)) for run in runs])


def longest_phases(run: Run) -> list[tuple[str, str]]:
    """The phases of its compile that took the most, each with its time; they nest, so that no sum of them is one."""
    longest = sorted(run.phases.items(), key=lambda each: -each[1])[:PHASES]
    return [(name, duration(seconds * 1000)) for name, seconds in longest]
