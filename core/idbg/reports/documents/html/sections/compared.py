"""What changed from one run to another: target, verdict, graphs, kernels, breaks, numbers, time?"""

from dataclasses import dataclass

from markupsafe import Markup

from idbg.analysis.decisions.compared import Compared, compared
from idbg.analysis.decisions.kernels_matched import KernelChange
from idbg.analysis.decisions.side_by_side import SideLine, around_changes, side_by_side
from idbg.render.html.templating import fill
from idbg.reports import again
from idbg.reports.decisions import compared as report
from idbg.reports.documents import Told
from idbg.schema.runs import Run

TITLE = "Comparison"
ANCHOR = "comparison"
ROWS = 200  # of each kind
SOURCES = 30  # kernels whose sources stand side by side
LINES = 200  # of one
LONGEST = 6000  # lines of both together: to compare more takes seconds


@dataclass(frozen=True)
class Kind:
    """What changed of one kind, a sentence each."""

    title: str
    lines: list[str]


@dataclass(frozen=True)
class Source:
    """The code of a kernel that changed, in both runs; None stands for lines that are the same."""

    title: str
    lines: list[SideLine | None]
    left: int


@dataclass(frozen=True)
class Both:
    """Two runs held against one another."""

    before: str
    after: str
    changed: str
    verdicts: list[str]
    kinds: list[Kind]
    kernels: str
    sources: list[Source]
    time: str
    time_lines: list[str]


def section(told: Told) -> Markup | None:
    """The last run against that of the other session; of a session alone, its last run against the one before. None
    where there are not two.
    """
    pair = two_runs(told)
    if pair is None:
        return None
    (name, before), (other, after) = pair
    return fill("compared.html", both=both(name, before, other, after), most=ROWS)


def two_runs(told: Told) -> tuple[tuple[str, Run], tuple[str, Run]] | None:
    """What is compared with what, each with a name."""
    last = told.history.last
    if told.other is not None and told.other.history.last is not None and last is not None:
        first = told.other.history.last
        return (_named(told.other, first), first), (_named(told, last), last)
    if told.other is None and len(told.history.runs) > 1 and last is not None:
        first = told.history.runs[sorted(told.history.runs)[-2]]
        return (_named(told, first), first), (_named(told, last), last)
    return None


def _named(told: Told, run: Run) -> str:
    return f"run {run.number} of {told.name or 'the session'}: {again.command(run)}"


def both(name: str, before: Run, other: str, after: Run) -> Both:
    """In what the second differs from the first."""
    found = compared(before, after)
    different = sorted(found.different, key=report.rank)
    changed = [change for change in different if change.before and change.after]
    return Both(
        before=name,
        after=other,
        changed=report.changed_words(found),
        verdicts=[line.strip() for line in report.verdicts(before, after, found)],
        kinds=[kind for kind in _kinds(found, different) if kind.lines],
        kernels=report.kernels_sentence(found),
        sources=[_source(change) for change in changed[:SOURCES]],
        time=report.time_sentence(found),
        time_lines=report.time_lines(before, after, found),
    )


def _kinds(found: Compared, different: list[KernelChange]) -> list[Kind]:
    return [
        Kind("Numbers", [report.number_words(each) for each in found.numbers or ()]),
        Kind("Rules broken", [report.tally_words(each) for each in found.violations]),
        Kind("Graph breaks", [report.tally_words(each) for each in found.breaks]),
        Kind("Recompiles", [report.tally_words(each) for each in found.recompiles]),
        Kind("Compiles of a function that one run alone has", list(report.frames_words(found))),
        Kind("Graphs", [report.graph_words(each) for each in found.graphs]),
        Kind("Kernels", [report.kernel_words(each).strip() for each in different]),
    ]


def _source(change: KernelChange) -> Source:
    left, right = (report.sources(kernels) for kernels in (change.before, change.after))
    if left.count("\n") + right.count("\n") > LONGEST:
        return Source(report.kernel_words(change).strip(), [], left.count("\n") + right.count("\n"))
    lines = list(around_changes(side_by_side(left, right)))
    return Source(report.kernel_words(change).strip(), lines[:LINES], max(len(lines) - LINES, 0))
