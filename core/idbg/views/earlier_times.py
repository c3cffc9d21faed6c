"""Compare a compile's time with earlier runs: what each span took, and which use took longer."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import median

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Change, Heat, Timing, Use
from idbg.format.amounts import seconds
from idbg.schema.decisions.inductor import Span
from idbg.schema.runs import Run
from idbg.views.tree import Options

USES: dict[Use, str] = {
    "cpp": "building C++ kernels",
    "cpu check": "testing which vector instructions can be used",
    "triton": "building Triton kernels",
    "autotuning": "autotuning",
    "dynamo": "Dynamo's tracing of Python",
    "guards": "building guards",
    "aot": "AOTAutograd's tracing to ATen",
    "passes": "passes over graphs",
    "lowering": "lowering",
    "scheduling": "scheduling and fusion",
    "codegen": "generating the code of kernels",
    "caches": "caches: their keys, and loading what they hold",
    "idbg": "idbg, reading graphs",
    "other": "other parts",
    "unnamed": "unattributed",
}
HEATS: dict[Heat, str] = {
    "cold": "cold: Inductor generated the code of every graph",
    "warm": "warm: Inductor found the code of every graph in its cache",
    "mixed": "partly warm: Inductor found the code of some graphs in its cache",
    "": "Inductor generated no code",
}
LEAST = 0.005
"""Of the time: less is left out."""
_EARLIER = 5  # runs: what is typical is their median
Name = tuple[str, str, str, int]
"""A span in any run: frame, name, what it is of, and its number among those."""
_Past = tuple[Sequence[Timing], float]


def typical(options: Options) -> dict[Name, float]:
    """Seconds of each span in the earlier runs: the median of those that had it."""
    took: dict[Name, list[float]] = {}
    for timings, _ in past(options):
        for name, timing in named(timings):
            took.setdefault(name, []).append(timing.seconds)
    return {name: median(values) for name, values in took.items()}


def past(options: Options) -> list[_Past]:
    """The spans of the last few earlier runs, and the seconds of all of each."""
    return [_ended(_Key(run)) for run in options.earlier[-_EARLIER:]]


class _Key:
    """A run that has ended: it does not change."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known = run.number, run.started, len(run.decided.last(Span))

    def __hash__(self) -> int:
        return hash(self.known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.known == self.known


@lru_cache(maxsize=2 * _EARLIER)
def _ended(key: _Key) -> _Past:
    timings = times.tree(key.run)
    return timings, sum(each.seconds for each in times.spent(timings))


def named(timings: Sequence[Timing]) -> Iterator[tuple[Name, Timing]]:
    seen: dict[tuple[str, str, str], int] = {}
    for timing in timings:
        name = timing.span.frame, timing.span.name, timing.span.what
        seen[name] = seen.get(name, 0) + 1
        yield (*name, seen[name]), timing


def total_before(options: Options) -> float | None:
    """How long the earlier runs compiled: the median."""
    totals = [total for _, total in past(options)]
    return median(totals) if totals else None


def compile_times(run: Run) -> tuple[float, Heat]:
    """How long a run compiled, and how warm its caches were."""
    return sum(each.seconds for each in times.spent(times.tree(run))), times.heat(run)


def changed_uses(before: Run, after: Run) -> list[Change]:
    """What the second run spent notably more or less time on, the largest change first."""
    total = max(compile_times(before)[0], compile_times(after)[0])
    changes = times.compared(times.tree(before), times.tree(after))
    return [change for change in changes if abs(change.more) >= max(LEAST * total, 0.001)]


def compared(before: Run, after: Run) -> Iterator[str]:
    """How much longer or shorter the second run took to compile, and for what; which of them was cold."""
    (one, heat), (other, heat_after) = compile_times(before), compile_times(after)
    yield f"compile time: {seconds(one)}, then {seconds(other)}"
    if heat != heat_after:
        yield f"  the first was {HEATS[heat]}; the second {HEATS[heat_after]}"
    for change in changed_uses(before, after):
        took = ["none" if each is None else seconds(each) for each in (change.before, change.after)]
        sign = "+" if change.more > 0 else "-"
        yield f"  {USES[change.use]:<52}{took[0]:>9}{took[1]:>9}  {sign}{seconds(abs(change.more))}"
