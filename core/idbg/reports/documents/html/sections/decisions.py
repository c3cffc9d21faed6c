"""Show what else the compiler decided: which frames, what was fused, what the caches had, what the passes did."""

from markupsafe import Markup

from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import of_views

TITLE = "Frames, fusion, caches"
ANCHOR = "decisions"
KINDS = {
    "frames": "frame",
    "passes": "pass",
    "fusion": "fusion",
    "cache": "cache",
    "cuda_graphs": "CUDA graph",
    "autotune": "candidate",
}
"""View -> the word by which the page's search finds its rows."""


def section(session: SessionData) -> Markup | None:
    """The kinds of which a run has something; None where none has."""
    return of_views(session, KINDS, lambda run: run.decided.results or run.decided.skips)
