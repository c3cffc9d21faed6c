"""Write a session as plain text."""

from collections.abc import Iterator

from idbg.format.glyphs import VERDICT_SIGNS
from idbg.format.plain_text import plain
from idbg.format.verdicts import session_words
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
    if session.history.runs or session.history.processes:
        yield f"{VERDICT_SIGNS[session.history.looks]} {session_words(session.history)}"
    if session.history.process is not None:
        yield f"process {session.history.process.name}"
    yield from lines(listed(session.history.processes.values()))
    for run in session.history.runs.values():
        yield ""
        yield f"run {run.number}"
        yield from run_report(run)
    if session.history.ranks is not None:
        yield from ("", *lines(ranks.view(session.history.ranks)))
    elif not session.history.runs and not session.history.processes:
        yield "nothing was run: 0 runs, 0 graphs, 0 kernels, 0 violations"
