"""Show where the time of a compile went, with its trace as a file to save."""

import gzip
from base64 import b64encode

from markupsafe import Markup

from idbg.reports import chrome_trace
from idbg.reports.documents import SessionData
from idbg.reports.documents.html.sections.viewed import of_views
from idbg.schema import strict_json
from idbg.schema.decisions.inductor import Span
from idbg.schema.runs import Run

TITLE = "Compile time"
ANCHOR = "time"
LARGEST_TRACE = 1_000_000  # bytes, compressed, that a page carries


def section(session: SessionData) -> Markup | None:
    """Each run whose time is known, and its trace."""
    shown = without_trace(session)
    traces = [trace(run) for run in session.history.runs.values() if run.decided.last(Span)]
    return shown and Markup("\n").join((shown, *traces))


def without_trace(session: SessionData) -> Markup | None:
    """The same for a page that holds no files."""
    return of_views(session, {"time": "span"}, lambda run: run.decided.last(Span) or run.phases)


def trace(run: Run) -> Markup:
    """The run's Chrome trace as a file in the page itself, compressed: Perfetto reads it so."""
    packed = gzip.compress(strict_json.encode(chrome_trace.trace(run)), mtime=0)  # the same page for the same session
    if len(packed) > LARGEST_TRACE:
        too_large = "The trace of run {} is too large for a page: <code>idbg analyze SESSION --trace time.json</code>"
        return Markup(f"<p>{too_large} writes it.</p>").format(run.number)
    link = '<a download="compile-run-{0}.json.gz" href="data:application/gzip;base64,{1}">Chrome trace of run {0}</a>'
    text = f"<p>{link}: ui.perfetto.dev and chrome://tracing open the file.</p>"
    return Markup(text).format(run.number, b64encode(packed).decode())
