"""Write a session as plain text."""

from collections.abc import Iterator

from idbg.format.plain_text import plain
from idbg.render.text import lines
from idbg.reports.documents import SessionData
from idbg.reports.text import run_report
from idbg.views import ranks
from idbg.views.processes import listed

ABOUT = "plain text, each run as idbg run reports it"
SUFFIXES = (".txt",)


def render(session: SessionData) -> bytes:
    """Run after run, oldest first."""
    return (plain("\n".join(_lines(session))) + "\n").encode()


def _lines(session: SessionData) -> Iterator[str]:
    yield f"session {session.name}" if session.name else "no session"
    if session.history.process is not None:
        yield f"process {session.history.process.name}"
    yield from lines(listed(session.history.processes.values()))
    for run in session.history.runs.values():
        yield ""
        yield f"run {run.number}"
        yield from run_report(run)
    if session.history.ranks is not None:
        yield from ("", *lines(ranks.view(session.history.ranks)))
    elif not session.history.runs:
        yield "nothing was run: 0 runs, 0 graphs, 0 kernels, 0 violations"
