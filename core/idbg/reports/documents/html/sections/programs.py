"""Show each run: its program, its target, and its report."""

from markupsafe import Markup

from idbg.format.amounts import counted
from idbg.render.html.templating import fill
from idbg.reports import text
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.summary import headline
from idbg.schema.runs import Run

TITLE = "Programs and runs"
ANCHOR = "programs"
STREAMS = ("stdout", "stderr")
MOST = 20_000  # characters of a stream: its end


def section(session: SessionData) -> Markup | None:
    """Each run as `idbg run` reports it."""
    runs = list(session.history.runs.values())
    if not runs:
        return None
    entries = [(run, headline(run), text.run_report(run, tracebacks=False)[1:], _folded(run)) for run in runs]
    return fill("programs.html", runs=entries)


def _folded(run: Run) -> list[tuple[str, list[str]]]:
    """The tracebacks, which fill pages of torch's frames, then what it printed, by stream: the end of what is long."""
    folded = [("the traceback", each.splitlines()) for each in text.tracebacks(run)]
    for name in STREAMS:
        printed = "".join(event.text for event in run.output if event.stream == name)
        if printed:
            title = f"what it printed to {name}, {counted(len(printed), 'character')}"
            folded.append((title, printed[-MOST:].splitlines()))
    return folded
