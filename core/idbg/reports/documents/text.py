"""How does a whole session read as plain text?"""

from collections.abc import Iterator

from idbg.format.plain_text import plain
from idbg.reports.documents import Told
from idbg.reports.text import run_report

ABOUT = "plain text, each run as idbg run tells it"
SUFFIXES = (".txt",)


def render(told: Told) -> bytes:
    """Run after run, oldest first."""
    return (plain("\n".join(_lines(told))) + "\n").encode()


def _lines(told: Told) -> Iterator[str]:
    yield f"session {told.name}" if told.name else "no session"
    for run in told.history.runs.values():
        yield ""
        yield f"run {run.number}"
        yield from run_report(run)
    if not told.history.runs:
        yield "nothing was run: 0 runs, 0 graphs, 0 kernels, 0 violations"
