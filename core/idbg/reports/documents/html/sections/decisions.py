"""What else did the compiler decide: which frames, what was fused, what the caches had, what the passes did?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.render.html.templating import fill
from idbg.reports import decisions
from idbg.reports.documents import Told
from idbg.schema.runs import Run

TITLE = "Frames, fusion, caches"
ANCHOR = "decisions"
KINDS = ("frames", "passes", "fusion", "cache", "cuda_graphs", "autotune")
LINES = 2000  # of one kind


@dataclass(frozen=True)
class KindTold:
    """One kind of decisions, as `idbg analyze` tells it."""

    name: str
    about: str
    lines: list[str]
    left: int


def section(told: Told) -> Markup | None:
    """The kinds of which a run has something; None where none has."""
    runs = list(told.history.runs.values())
    shown = [(run, kinds) for run in runs if (kinds := of_run(run))]
    return fill("decisions.html", shown=shown, runs=runs) if shown else None


def of_run(run: Run) -> list[KindTold]:
    """What was decided in this run; a kind that was not recorded, or of which there is nothing, is not there."""
    has = {
        "frames": bool(run.decided.results or run.decided.skips),
        "passes": bool(run.decided.passes),
        "fusion": bool(run.codes) and bool(run.decided.fusion or run.decided.results),
        "cache": bool(run.decided.caches),
        "cuda_graphs": bool(run.decided.cuda_graphs),
        "autotune": bool(run.decided.autotuned),
    }
    return [_told(run, name) for name in KINDS if has[name]]


def _told(run: Run, name: str) -> KindTold:
    lines = list(decisions.telling(name).text(run))
    return KindTold(name, decisions.TYPES[name], lines[:LINES], max(len(lines) - LINES, 0))
