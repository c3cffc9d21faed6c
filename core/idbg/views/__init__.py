"""Answer a user's question about a run with a section: one module a question, the same for every output.

A module here has `view(run, options)`, which gives a `Section` of `tree`; painters in `render/` and on the screen draw
it. `as_json(run)` gives the same facts as records. `about` finds the rows that are about a node, a kernel or a line.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from idbg.schema.decisions import reports
from idbg.schema.runs import Run
from idbg.views import records
from idbg.views.tree import NO_OPTIONS, Options, Section


class View(Protocol):
    """A module of this room."""

    TITLE: str

    def view(self, run: Run, options: Options = NO_OPTIONS) -> Section:
        """The section about this run."""

    def count(self, run: Run) -> int | None:
        """The section's count, found without the section."""

    def as_json(self, run: Run) -> object:
        """The same facts as records, whole."""

    def in_short(self, run: Run) -> str:
        """A few words, "" for none: of modules whose report has words."""


def in_short(run: Run) -> Iterator[tuple[str, str]]:
    """What stands beside a run's counts, each with the type of `idbg analyze` that has more of it."""
    for each in reports():
        if each.has_words and (words := view(each.name).in_short(run)):
            yield each.name, words


def section(name: str, run: Run, options: Options = NO_OPTIONS) -> Section:
    """What the module of this name says about the run; that it is not recorded, where it is not."""
    return records.checked(view(name).view(run, options), run, name)


def count(name: str, run: Run) -> int | None:
    """The count of that section; None where it is not known."""
    found = view(name).count(run)
    return found or (None if name in run.unrecorded else found)


def as_json(name: str, run: Run) -> object:
    """The same facts as records; null where they are not recorded."""
    is_known = name not in run.unrecorded or count(name, run) is not None or view(name).view(run).body
    return view(name).as_json(run) if is_known else None


def view(name: str) -> View:
    """The module of this name."""
    return cast("View", import_module(f"{__name__}.{name}"))
