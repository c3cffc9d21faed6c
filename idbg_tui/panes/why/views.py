"""List the views of the pane "Why", each one or several sections of `idbg.views`, and their rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from idbg import views
from idbg.schema.decisions import reports
from idbg.schema.runs import Run
from idbg.views import tree
from idbg.views.tree import Options
from idbg_tui.panes.why import flame
from idbg_tui.widgets import sections
from idbg_tui.widgets.search import pattern
from idbg_tui.widgets.section_rows import Look, Row, Rows, text_rows

ViewName = Literal["frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache"]
VIEWS: tuple[ViewName, ...] = ("frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache")
"""In the order in which the keys go through them."""
PARTS: dict[ViewName, tuple[str, ...]] = {
    view: (view, *(report.name for report in reports() if report.under == view)) for view in VIEWS
}
"""The sections of each view, one below the other."""


def showing(name: str) -> ViewName:
    """The view that shows this module of `idbg.views`."""
    return next(view for view in VIEWS if name in PARTS[view])


_WHOLE = 500  # cells of a row: nothing is cut


def listed(name: ViewName, run: Run, look: Look) -> Sequence[Row]:
    """The rows of a view, of what is looked for those that have it and what they are under; none where the summaries
    of its sections are all there is.
    """
    with sections.collector_paused():
        return _listed(name, run, look)


def _listed(name: ViewName, run: Run, look: Look) -> Sequence[Row]:
    everything = look.hiding or look.whole or bool(look.query)
    options = Options(everything, look.hiding, look.order, look.now, look.typical, look.earlier)
    shown = [views.section(part, run, options) for part in PARTS[name]]
    if (found := pattern(look.query)) is not None:
        shown = [tree.having(each, lambda row: bool(found.search(sections.searched(row, look)))) for each in shown]
        look = replace(look, whole=True)
    rows = Rows()
    if any(section.body for section in shown):
        for section in shown:
            if section.body:
                rows.extend(sections.rows(section, look, flame.rows))
            elif not look.query:
                rows.add_all(text_rows(section.summary, look, key=section.title, style="dim"))
    return rows


def count(name: ViewName, run: Run) -> int:
    """The count beside the view's name: that of its first section that counts something."""
    counts = (views.count(part, run) for part in PARTS[name])
    return next((count for count in counts if count), 0)


def empty(name: ViewName, run: Run | None) -> str:
    """Why there is nothing to list."""
    if run is None:
        return "not compiled yet: r compiles, and lists here what was decided"
    return views.section(name, run).summary


def text_of(row: Row) -> str:
    """The whole text of a row."""
    return "".join(text for text, _ in row.draw(_WHOLE))
