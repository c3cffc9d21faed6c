"""Where do graphs break, what was compiled again, why, what does it cost, and what can be done about each?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.decisions.break_words import suggestions
from idbg.analysis.decisions.breaks import BreakPlace, places
from idbg.analysis.decisions.recompiles import CompileRow, Timeline, place_of, timelines
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.format.amounts import counted
from idbg.reports.decisions import breaks, recompiles
from idbg.reports.decisions.stacks import stack_lines
from idbg.reports.documents import Told
from idbg.reports.documents.html.templating import fill
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.runs import Run

TITLE = "Graph breaks and recompiles"
ANCHOR = "breaks"
PLACES = 200  # of a run, and as many functions
COMPILES = 100  # of one function


@dataclass(frozen=True)
class BreakTold:
    """One line that breaks graphs."""

    place: BreakPlace
    id: str

    @property
    def first(self) -> GraphBreak:
        """The one that is told whole."""
        return self.place.first

    @property
    def met_elsewhere(self) -> bool:
        """Whether torch names another line than the user's."""
        return bool(self.first.file) and (self.first.file, self.first.line) != (self.place.file, self.place.line)

    @property
    def said(self) -> list[str]:
        """How the function goes on, and what that costs."""
        return [*breaks.goes_on(self.place), *breaks.cost(self.place)]

    @property
    def suggestions(self) -> list[Suggestion]:
        """What can be done."""
        return list(suggestions(self.first))

    @property
    def stack(self) -> list[str]:
        """The user's way to it."""
        return list(stack_lines(self.first.stack))


@dataclass(frozen=True)
class RecompileTold:
    """One function that was compiled again."""

    run: Run
    timeline: Timeline
    id: str

    @property
    def compiles(self) -> str:
        """How often it was compiled."""
        return counted(len(recompiles.made(self.timeline)), "compile")

    @property
    def rows(self) -> list[tuple[int, str, str, str, tuple[str, int]]]:
        """Number, frame, why, how long, at which line; in their order."""
        shown = self.timeline.compiles[:COMPILES]
        return [(row.number, row.frame, recompiles.why(row), recompiles.took(row), self._place(row)) for row in shown]

    def _place(self, row: CompileRow) -> tuple[str, int]:
        return place_of(self.run, row.failed[0]) if row.failed else ("", 0)

    @property
    def left(self) -> int:
        """How many compiles are not listed."""
        return max(len(self.timeline.compiles) - COMPILES, 0)

    @property
    def suggestions(self) -> list[Suggestion]:
        """What can be done, the best first."""
        return recompiles.advice(self.run, self.timeline)


@dataclass(frozen=True)
class RunTold:
    """What broke and what was compiled again in one run."""

    run: Run
    breaks_said: str
    breaks: list[BreakTold]
    recompiles_said: str
    warnings: list[str]
    recompiles: list[RecompileTold]


def section(told: Told) -> Markup | None:
    """Each run that compiled something; None where none did."""
    runs = list(told.history.runs.values())
    shown = [of_run(run) for run in runs if run.frames or run.breaks or run.decided.results]
    return fill("breaks.html", shown=shown, runs=runs, most=PLACES) if shown else None


def of_run(run: Run) -> RunTold:
    """One run's breaks and recompiles, what costs most first."""
    met, again = places(run), timelines(run)
    return RunTold(
        run=run,
        breaks_said=breaks.headline(met),
        breaks=[BreakTold(place, f"break:{run.number}:{at}") for at, place in enumerate(met)],
        recompiles_said=recompiles.headline(run),
        warnings=recompiles.warnings(run),
        recompiles=[RecompileTold(run, each, f"recompile:{run.number}:{at}") for at, each in enumerate(again)],
    )
