"""The sessions and examples that can be opened, filtered by typed words. No widget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from msgspec import structs

from idbg.config.examples import TOUR, Example
from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.summaries import SessionSummary
from idbg.views import sessions
from idbg.views.tree import Block, Cell, Column, Direction, Row, Section, Table, ordered_table, words

SHOWN = 8
"""So many sessions are shown while nothing is typed, so that what is below them is visible."""
_ABOUT = (Column("about", "sentence", least=20),)

Choosable = SessionSummary | Example


def lacking(example: Example) -> str:
    """What must be installed before it runs, and how; "" where nothing."""
    if not example.lacks:
        return ""
    how = "pip install torch" if "torch" in example.lacks else "pip install 'idbg[examples]'"
    return f"needs {' and '.join(example.lacks)}: {how}"


@dataclass
class Offers:
    """All that there is. `sessions` None: the folder is still being read; `problem` is why it cannot be. The key of an
    offer's row is the session's folder, or the example's path.
    """

    output: Path
    sessions: list[SessionSummary] | None = None
    examples: list[Example] = field(default_factory=list)
    problem: str = ""

    def chosen(self, key: object) -> Choosable | None:
        """The offer whose row has this key."""
        found: Iterator[Choosable] = (each for each in self.sessions or () if each.folder == key)
        return next(found, None) or next((each for each in self.examples if str(each.path) == key), None)

    def section(self, typed: str = "", sort: tuple[str, Direction] | None = None) -> Section:
        """The offers with every typed word; of the sessions a few while nothing is typed, the first in their order."""
        wanted = typed.lower().split()
        return Section("Offers", "", body=(*self._sessions(wanted, sort), *self._examples(wanted)))

    def _sessions(self, wanted: Sequence[str], sort: tuple[str, Direction] | None) -> Iterator[Block]:
        where = file_names.from_here(str(self.output))
        none = f"none in {where} yet: idbg-tui FILE.py or idbg run FILE.py makes one"
        if self.problem or self.sessions is None:
            yield _head("Sessions", self.problem or f"reading {where}")
            return
        if not self.sessions and not wanted:
            yield _head("Sessions", none)
        found = [each for each in self.sessions if _has(_text_of(each), wanted)]
        if not found:
            return
        most = len(found) if wanted else SHOWN
        more = f": type to find the other {len(found) - most:,}" if most < len(found) else ""
        count = f"{len(found):,} of {counted(len(self.sessions), 'session')}" if wanted else f"{len(found):,}"
        (table,) = cast("tuple[Table]", sessions.view([_near(each) for each in (found if sort else found[:most])]).body)
        table = ordered_table(table, *sort) if sort else table
        yield structs.replace(table, rows=table.rows[:most], title=f"Last sessions  {count} in {where}{more}")

    def _examples(self, wanted: Sequence[str]) -> Iterator[Table]:
        """The tour first."""
        found = [each for each in self.examples if _has(f"{each.name} {each.about} example".lower(), wanted)]
        found.sort(key=lambda each: each.name != TOUR)
        if found:
            yield Table(_ABOUT, list(map(_example, found)), "example", "Examples, compiled when they are opened")


def _head(title: str, about: str) -> Row:
    return Row((title,), words((title, "strong"), f"  {about}"))


def _example(example: Example) -> Row:
    tour, why = example.name == TOUR, lacking(example)
    about = "five minutes: where everything is, and the keys" if tour else example.about
    name = words(("  Take the tour" if tour else f"  {example.path.name}", "dim" if why else "strong"))
    return Row(str(example.path), name, (Cell(why or about, "dim"),))


def _near(each: SessionSummary) -> SessionSummary:
    """With its program from here; of one that lies elsewhere, the file with its folder."""
    near = file_names.from_here(each.program)
    return structs.replace(each, program="/".join(near.split("/")[-2:]) if near.startswith("/") else near)


def _text_of(each: SessionSummary) -> str:
    return f"{each.program} {each.name} {each.result} {each.backend} {each.accelerator} {each.damaged}".lower()


def _has(text: str, wanted: Sequence[str]) -> bool:
    return all(word in text for word in wanted)
