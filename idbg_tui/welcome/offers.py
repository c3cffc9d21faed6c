"""The sessions and examples that can be opened, filtered by typed words. No widget."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from idbg.config.examples import TOUR, Example
from idbg.format import file_names
from idbg.format.amounts import counted
from idbg.schema.summaries import SessionSummary

SHOWN = 8
"""So many sessions are shown while nothing is typed, so that what is below them is visible."""


@dataclass(frozen=True)
class Head:
    """A heading; `words` describe it."""

    title: str
    words: str = ""


@dataclass(frozen=True)
class Saved:
    """A session on disk."""

    summary: SessionSummary
    search_text: str = field(compare=False, default="")

    @classmethod
    def of(cls, summary: SessionSummary) -> "Saved":
        """With the text in which it is looked for."""
        texts = (summary.program, summary.name, summary.result, summary.backend, summary.accelerator, summary.damaged)
        return cls(summary, " ".join(texts).lower())


@dataclass(frozen=True)
class Shipped:
    """An example that comes with idbg, or the tour of one."""

    example: Example

    @property
    def is_tour(self) -> bool:
        """Whether choosing it begins the tour."""
        return self.example.name == TOUR

    @property
    def lacking(self) -> str:
        """What must be installed before it runs, and how; "" where nothing."""
        lacks = self.example.lacks
        if not lacks:
            return ""
        how = "pip install torch" if "torch" in lacks else "pip install 'idbg[examples]'"
        return f"needs {' and '.join(lacks)}: {how}"

    @property
    def search_text(self) -> str:
        """The text in which it is looked for."""
        return f"{self.example.name} {self.example.about} {'tour' if self.is_tour else 'example'}".lower()


Choosable = Saved | Shipped
Offer = Head | Saved | Shipped


@dataclass
class Offers:
    """All that there is. `sessions` None: the folder is still being read; `problem` is why it cannot be."""

    output: Path
    sessions: list[Saved] | None = None
    examples: list[Shipped] = field(default_factory=list)
    problem: str = ""

    def rows(self, typed: str) -> list[Offer]:
        """The offers with every typed word under their heads; of the sessions a few while nothing is typed."""
        words = typed.lower().split()
        return [*self._sessions(words), *self._examples(words)]

    def _sessions(self, words: Sequence[str]) -> Iterator[Offer]:
        where = file_names.from_here(str(self.output))
        if self.problem:
            yield Head("Sessions", self.problem)
            return
        if self.sessions is None:
            yield Head("Sessions", f"reading {where}")
            return
        if not self.sessions:
            if not words:
                yield Head("Sessions", f"none in {where} yet: idbg-tui FILE.py or idbg run FILE.py makes one")
            return
        found = [saved for saved in self.sessions if _says(saved.search_text, words)]
        if not found:
            return
        shown = found if words else found[:SHOWN]
        more = f": type to find the other {len(found) - len(shown):,}" if len(shown) < len(found) else ""
        count = f"{len(found):,} of {counted(len(self.sessions), 'session')}" if words else f"{len(found):,}"
        yield Head("Last sessions", f"{count} in {where}{more}")
        yield from shown

    def _examples(self, words: Sequence[str]) -> Iterator[Offer]:
        found = [shipped for shipped in self.examples if _says(shipped.search_text, words)]
        tours = [shipped for shipped in found if shipped.is_tour]
        if tours:
            yield Head("New here?")
            yield from tours
        if len(found) > len(tours):
            yield Head("Examples", "compiled when they are opened")
            yield from (shipped for shipped in found if not shipped.is_tour)


def _says(search_text: str, words: Sequence[str]) -> bool:
    return all(word in search_text for word in words)


def moment(started: float, now: float) -> str:
    """A time in words: "just now", "12 min ago", "3 h ago", else the day."""
    if not started:
        return ""
    passed = now - started
    if 0 <= passed < 60:
        return "just now"
    if 0 <= passed < 3600:
        return f"{passed / 60:.0f} min ago"
    if 0 <= passed < 12 * 3600:
        return f"{passed / 3600:.0f} h ago"
    try:
        then = time.localtime(started)
    except (OverflowError, ValueError, OSError):  # a log may have any number
        return ""
    same_year = then.tm_year == time.localtime(now).tm_year
    return time.strftime("%d %b %H:%M" if same_year else "%d %b %Y", then).lstrip("0")
