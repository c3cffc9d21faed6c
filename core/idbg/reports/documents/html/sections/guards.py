"""What does torch check before it uses compiled code, what does that take, and which check failed?"""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.guards import Failures
from idbg.format.amounts import evaluation
from idbg.render.html.templating import fill
from idbg.reports.decisions import guards as told_guards
from idbg.reports.documents import Told
from idbg.schema.decisions.dynamo import FrameGuards, Guard
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run

TITLE = "Guards"
ANCHOR = "guards"
GUARDS = 100  # of one frame, what failed first, then what takes longest
FRAMES = 100


@dataclass(frozen=True)
class FrameTold:
    """The guards of one frame."""

    frame: Frame
    name: str
    number: str
    cost: str
    left_out: str
    failed: int
    rows: list[tuple[bool, str, str, str, Guard]]
    left: int


def section(told: Told) -> Markup | None:
    """The frames of each run, those of which a guard failed first; None where none has guards."""
    runs = list(told.history.runs.values())
    shown = [(run, frames(run)) for run in runs if run.decided.guards]
    return fill("guards.html", shown=shown, runs=runs, most=FRAMES) if shown else None


def frames(run: Run) -> list[FrameTold]:
    """Those of which a guard failed, then those whose guards take longest."""
    failures = Failures(run)
    told = [(_frame(run, guards, failures), guards.seconds or 0.0) for guards in run.decided.guards.values()]
    return [frame for frame, _ in sorted(told, key=lambda each: (not each[0].failed, -each[1]))]


def _frame(run: Run, guards: FrameGuards, failures: Failures) -> FrameTold:
    frame = run.frames.get(guards.frame, Frame(guards.frame, "?"))
    rows = sorted(_rows(guards, failures), key=lambda row: (not row[0], -(row[4].seconds or 0.0)))
    return FrameTold(
        frame=frame,
        name=f"{guards.frame} {spoken(frame)}",
        number=told_guards.number(guards),
        cost=told_guards.cost(run, guards),
        left_out=told_guards.left_out(guards),
        failed=sum(row[0] for row in rows),
        rows=rows[:GUARDS],
        left=max(len(rows) - GUARDS, 0) + guards.dropped,
    )


def _rows(guards: FrameGuards, failures: Failures) -> Iterator[tuple[bool, str, str, str, Guard]]:
    """Whether it failed, what is checked, what one evaluation takes, what came of its failing."""
    for guard in guards.guards:
        compiles = failures.of(guards.frame, guard)
        outcome = told_guards.outcome(compiles) if compiles else ""
        yield bool(compiles), told_guards.words(guard), evaluation(guard.seconds), outcome, guard
