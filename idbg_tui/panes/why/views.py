"""Which views has the pane "Why", and which module makes the rows of each?

A view is a section of `idbg.views`, or a module of this room, with `rows(run, look)`, `count(run)` for its name's mark,
`NONE`, the sentence for a run that has none of it, and `FILTERS`.
"""

import gc
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Literal, Protocol, cast

from idbg import views
from idbg.format import file_names
from idbg.schema.decisions.decision import Decision, Kind
from idbg.schema.runs import Run
from idbg.views import tree
from idbg.views.tree import Options
from idbg_tui.panes.why import flame
from idbg_tui.widgets import sections
from idbg_tui.widgets.search import pattern
from idbg_tui.widgets.section_rows import Look, Row, first_match

ViewName = Literal["frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache"]
VIEWS: tuple[ViewName, ...] = ("frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache")
"""In the order in which the keys go through them."""
SECTIONS: frozenset[ViewName] = frozenset(("breaks", "recompiles", "guards", "time"))
"""Those that `idbg.views` has; each of the others has a module of its name in this room."""


OF_KIND: dict[Kind, ViewName] = {
    "skip": "frames",
    "break": "breaks",
    "recompile": "recompiles",
    "guard": "guards",
    "pass": "passes",
    "partition": "passes",
    "fusion": "fusion",
    "cache": "cache",
    "cuda graph": "cache",
    "autotune": "cache",
}
"""Which view tells more of a decision."""


_WHOLE = 500  # cells of a row: nothing is cut


class View(Protocol):
    """A module of this room that makes rows."""

    NONE: str
    """Why there is nothing to list in a run that has ended, and what would fill it."""
    FILTERS: bool
    """Whether `rows` leaves out itself what has not what is looked for."""

    def rows(self, run: Run, look: Look) -> Sequence[Row]:
        """What is listed of this run."""

    def count(self, run: Run) -> int:
        """How many there are of what the view lists."""


def view(name: ViewName) -> View:
    """What makes the rows of the view of this name."""
    return Sectioned(name) if name in SECTIONS else cast("View", import_module(f"idbg_tui.panes.why.{name}"))


class Sectioned:
    """The rows of a section of `idbg.views`."""

    NONE = ""
    FILTERS = True

    def __init__(self, name: ViewName) -> None:
        self._made = views.view(name)

    def rows(self, run: Run, look: Look) -> Sequence[Row]:
        """The section's rows; none where its summary is all there is."""
        everything = look.hiding or look.whole or bool(look.query)
        section = self._made.view(
            run, Options(everything, look.hiding, look.order, look.now, look.typical, look.earlier)
        )
        if (found := pattern(look.query)) is not None:
            section = tree.having(section, lambda row: bool(found.search(_searched(row, look))))
            look = replace(look, whole=True)
        return sections.rows(section, look, flame.rows) if section.body else []

    def count(self, run: Run) -> int:
        """As the section counts."""
        return self._made.count(run)


def _searched(row: tree.Row, look: Look) -> str:
    """What a search looks through: the row's words, the texts and places in its cells, and its code."""
    parts = [_text(part, look) if isinstance(part, tree.Place) else part.text for part in row.words]
    for cell in row.cells:
        if cell.value and not isinstance(cell.value, int | float):
            parts += "  ", cell.value if isinstance(cell.value, str) else _text(cell.value, look)
    return "".join((*parts, "\n", row.code)) if row.code else "".join(parts)


def _text(place: tree.Place, look: Look) -> str:
    return file_names.place(place.file, place.line, look.files)


def listed(name: ViewName, run: Run, look: Look) -> Sequence[Row]:
    """The rows of a view: of what is looked for, those that have it and what they are under."""
    made = view(name)
    if not look.query or made.FILTERS:
        collecting = gc.isenabled()
        gc.disable()  # so many new objects make it look through all that there is
        try:
            return made.rows(run, look)
        finally:
            if collecting:
                gc.enable()
    rows = made.rows(run, replace(look, whole=True))
    found = pattern(look.query)
    having = [row for row in rows if not row.head and found is not None and found.search(text_of(row))]
    keys, folds = {row.key for row in having}, {fold for row in having for fold in row.inside}
    return [row for row in rows if row.head or row.key in keys or row.fold in folds] if having else []


def empty(name: ViewName, run: Run | None) -> str:
    """Why there is nothing to list."""
    if run is None:
        return "not compiled yet: r compiles, and lists here what was decided"
    return views.view(name).view(run).summary if name in SECTIONS else view(name).NONE


def text_of(row: Row) -> str:
    """What a row says, whole."""
    return "".join(text for text, _ in row.draw(_WHOLE))


def row_of(rows: Sequence[Row], decision: Decision) -> int | None:
    """The row that tells of a decision: it is about the same node, kernel, line or frame, and has most of its words."""
    words = set(decision.words.split())

    def likeness(row: Row) -> int:
        nodes = not set(row.nodes).isdisjoint(decision.nodes)
        kernel = row.kernel is not None and (row.kernel[0], row.kernel[2]) in decision.kernels
        line = bool(row.file) and (row.file, row.line) == (decision.file, decision.line)
        frame = bool(row.frame) and row.frame == decision.frame
        alike = 4 * nodes + 4 * kernel + 4 * line + 2 * frame
        said = text_of(row) if alike and not row.head else ""
        return alike * _WHOLE + len(words.intersection(said.split())) if said else 0

    return first_match(rows, likeness)
