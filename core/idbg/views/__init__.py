"""Answer a user's question about a run with a section: one module a question, the same for every output.

A module here has `view(run, options)`, which gives a `Section` of `tree`; painters in `render/` and on the screen draw
it. `as_json(run)` gives the same facts as records. `about` finds the rows that are about a node, a kernel or a line.
"""

from importlib import import_module
from typing import Protocol, cast

from idbg.schema.runs import Run
from idbg.views.tree import NO_OPTIONS, Options, Section


class View(Protocol):
    """A module of this room."""

    def view(self, run: Run, options: Options = NO_OPTIONS) -> Section:
        """The section about this run."""

    def count(self, run: Run) -> int | None:
        """The section's count, found without the section."""

    def as_json(self, run: Run) -> object:
        """The same facts as records, whole."""


def view(name: str) -> View:
    """The module of this name."""
    return cast("View", import_module(f"{__name__}.{name}"))
