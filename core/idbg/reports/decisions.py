"""Report the compiler's decisions by type, as text, as a section and as JSON: `idbg analyze --type NAME`."""

from collections.abc import Iterable

from msgspec import to_builtins

from idbg import views
from idbg.render.text import lines
from idbg.reports import text as run_text
from idbg.schema.decisions import reports
from idbg.schema.runs import Run
from idbg.views.tree import Section, referring

TYPES: dict[str, str] = {
    "summary": "what was compiled, and what stood in its way",
    "constraints": "the accelerator's rules that are broken",
    **{report.name: report.about for report in sorted(reports())},
}
"""Each type and what it reports."""

VIEWS = {name: {"constraints": "violations"}.get(name, name) for name in TYPES if name != "summary"}
"""The module of `idbg.views` that answers each type; the summary is a run's report and has none."""


def text(name: str, run: Run) -> Iterable[str]:
    """The lines for a person, the most important first."""
    if name == "summary":
        return [*run_text.run_report(run), f"  {run_text.decision_counts(run)}"]
    return lines(section(name, run))


def section(name: str, run: Run) -> Section:
    """The section of a type that has a view."""
    return views.section(VIEWS[name], run)


def as_json(name: str, run: Run) -> object:
    """The same for a program: records, lists and plain values, all of them."""
    return run_text.summary_json(run) if name == "summary" else views.as_json(VIEWS[name], run)


def refs(name: str, run: Run) -> list[dict[str, object]]:
    """The rows of a type that refer to nodes, a kernel, a line, a frame or graphs: their words and to what."""
    rows = referring(section(name, run)) if name in VIEWS else ()
    return [{"row": row.text, **to_builtins(row.refs)} for row in rows]
