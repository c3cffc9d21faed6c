"""Which views has the pane "Why", and which module makes the rows of each?

A view is a module of this room, with `rows(run, look)`, `count(run)` for its name's mark, and `NONE`, the sentence for
a run that has none of it. Those of VIEWS that have no module here show what `idbg analyze --type NAME` prints.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Literal, Protocol, cast

from idbg.schema.runs import Run
from idbg_tui.panes.why import told
from idbg_tui.panes.why.rows import Look, Row

ViewName = Literal["frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache"]
VIEWS: tuple[ViewName, ...] = ("frames", "breaks", "recompiles", "guards", "time", "passes", "fusion", "cache")
"""In the order in which the keys go through them."""
OWN: frozenset[ViewName] = frozenset()
"""Those that have a module of their name in this room."""


class View(Protocol):
    """A module of this room that makes rows."""

    NONE: str
    """Why there is nothing to list in a run that has ended, and what would fill it."""

    def rows(self, run: Run, look: Look) -> Sequence[Row]:
        """What is listed of this run."""

    def count(self, run: Run) -> int:
        """How many there are of what the view lists."""


def view(name: ViewName) -> View:
    """What makes the rows of the view of this name."""
    return cast("View", import_module(f"idbg_tui.panes.why.{name}")) if name in OWN else told.Told(name)
