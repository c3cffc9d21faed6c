"""Compare two runs: target, frames, graphs, breaks, kernels, violations, numbers, compile time, latency.

From the records of both alone, so that two saved sessions can be compared as two runs of one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

import msgspec

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.kernels_matched import KernelChange, matched
from idbg.schema.bench import Latency
from idbg.schema.decisions.dynamo import BreakAgain
from idbg.schema.decisions.inductor import CacheAnswer
from idbg.schema.graphs import Frame, Graph, GraphId, Part, Stage
from idbg.schema.programs import OptionValue, Target, Verdict
from idbg.schema.runs import Run

NOT_SET = "default"


class TargetChange(msgspec.Struct, frozen=True):
    """One thing that the runs were made for otherwise: a field of the target, an option or a setting by its name."""

    name: str
    before: str
    after: str


class FrameChange(msgspec.Struct, frozen=True):
    """One compile of a function that only one of the runs has, by its frame; None where that run has it not."""

    before: Frame | None
    after: Frame | None


class GraphChange(msgspec.Struct, frozen=True, kw_only=True):
    """One graph of both runs. `before` and `after`: how many nodes, None where a run has no such graph; `ops`: of what
    has more or fewer nodes in one, (target, before, after).
    """

    frame: str
    function: str
    stage: Stage
    part: Part
    before: int | None
    after: int | None
    ops: tuple[tuple[str, int, int], ...] = ()


class Tally(msgspec.Struct, frozen=True):
    """How often something was met in each run; `file` and `line` where it is at a line of the user's."""

    what: str
    before: int
    after: int
    file: str = ""
    line: int = 0


class NumberChange(msgspec.Struct, frozen=True):
    """An output or gradient that was compared in both runs: whether it passed, and its largest absolute error."""

    name: str
    passed: tuple[bool, bool]
    max_abs: tuple[float | None, float | None]


class Times(msgspec.Struct, frozen=True):
    """Seconds of one phase of both runs; None where a run has none."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """Seconds more that the second took; what a run has not took none."""
        return (self.after or 0.0) - (self.before or 0.0)


class Cached(msgspec.Struct, frozen=True):
    """How many of a run's graphs and kernels were looked up in caches, and how many were there."""

    hits: int = 0
    lookups: int = msgspec.field(default=0, name="asked")


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All in which two runs differ. `kernels` has those that are the same too; `graphs`, `breaks`, `recompiles`,
    `violations` and `numbers` only what changed. `numbers` is None where not both were compared with a reference;
    `latency` where not both were measured. `phases`: of all, those that changed the most first.
    """

    runs: tuple[int, int]
    target: tuple[TargetChange, ...]
    verdicts: tuple[Verdict, Verdict]
    seconds: Times
    phases: tuple[Times, ...]
    frames: tuple[FrameChange, ...]
    graphs: tuple[GraphChange, ...]
    breaks: tuple[Tally, ...]
    recompiles: tuple[Tally, ...]
    kernels: tuple[KernelChange, ...]
    violations: tuple[Tally, ...]
    numbers: tuple[NumberChange, ...] | None
    latency: tuple[Latency, Latency] | None = None
    cold: bool = False  # both runs began with empty caches
    cached: tuple[Cached, Cached] = (Cached(), Cached())

    @property
    def different(self) -> tuple[KernelChange, ...]:
        """The kernels that are not the same in both."""
        return tuple(change for change in self.kernels if change.how != "same")


def compared(before: Run, after: Run, latency: tuple[Latency, Latency] | None = None) -> Compared:
    """In what the second run differs from the first; `latency` is what was measured of both."""
    pairs = list(_frames(before, after))
    same = {one.id: other.id for one, other in pairs if one is not None and other is not None}
    return Compared(
        runs=(before.number, after.number),
        target=tuple(target_changes(before.target, after.target)),
        verdicts=(before.verdict, after.verdict),
        seconds=Times("all", before.seconds, after.seconds),
        phases=tuple(_phases(before.phases, after.phases)),
        frames=tuple(FrameChange(one, other) for one, other in pairs if one is None or other is None),
        graphs=tuple(_graphs(before, after, same)),
        breaks=tuple(_tallies(_breaks(before), _breaks(after))),
        recompiles=tuple(_tallies(_recompiles(before), _recompiles(after))),
        kernels=tuple(matched(before, after, same)),
        violations=tuple(_tallies(_violations(before), _violations(after))),
        numbers=_numbers(before, after),
        latency=latency,
        cold=before.target.cold and after.target.cold,
        cached=(_cached(before), _cached(after)),
    )


# ------------------------------------------------------------- what they were made for


def target_changes(before: Target, after: Target) -> Iterator[TargetChange]:
    """What differs, each option and setting by its own name."""
    for name in Target.__struct_fields__:
        one, other = getattr(before, name), getattr(after, name)
        if one == other:
            continue
        if name in ("options", "settings"):
            yield from _named(one, other)
        elif name == "rules":
            yield TargetChange("rules", "others", "others")
        elif name != "options_for":
            yield TargetChange(name, _written(one), _written(other))


def _named(before: Mapping[str, OptionValue], after: Mapping[str, OptionValue]) -> Iterator[TargetChange]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name, NOT_SET) != after.get(name, NOT_SET):
            yield TargetChange(name, _written(before.get(name, NOT_SET)), _written(after.get(name, NOT_SET)))


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "the program's" if value in ("", None) else str(value)


# ------------------------------------------------------------- what came of it


def _frames(before: Run, after: Run) -> Iterator[tuple[Frame | None, Frame | None]]:
    """The compiles of each function, the first with the first."""
    ours, theirs = _by_function(before.frames.values()), _by_function(after.frames.values())
    for key in dict.fromkeys((*ours, *theirs)):
        yield from zip_longest(ours.get(key, []), theirs.get(key, []))


def _by_function(frames: Iterable[Frame]) -> dict[tuple[str, str, int], list[Frame]]:
    found: defaultdict[tuple[str, str, int], list[Frame]] = defaultdict(list)
    for frame in frames:
        found[spoken(frame), frame.file, frame.line].append(frame)
    return found


def _graphs(before: Run, after: Run, same: Mapping[str, str]) -> Iterator[GraphChange]:
    """The graphs that are not made of the same ops, of the frames that both runs have."""
    there = {other: one for one, other in same.items()}
    keys = [key for key in before.graphs if key.frame in same]
    keys += [
        GraphId(there[key.frame], key.stage, key.part)
        for key in after.graphs
        if key.frame in there and GraphId(there[key.frame], key.stage, key.part) not in before.graphs
    ]
    for key in keys:
        one = before.graphs.get(key)
        other = after.graphs.get(GraphId(same[key.frame], key.stage, key.part))
        ops, theirs = _ops(one), _ops(other)
        changed = [(op, ops[op], theirs[op]) for op in dict.fromkeys((*ops, *theirs)) if ops[op] != theirs[op]]
        if changed or one is None or other is None:
            yield GraphChange(
                frame=key.frame,
                function=spoken(before.frames[key.frame]),
                stage=key.stage,
                part=key.part,
                before=len(one.nodes) if one else None,
                after=len(other.nodes) if other else None,
                ops=tuple(sorted(changed, key=lambda op: -abs(op[2] - op[1]))) if one and other else (),
            )


def _ops(graph: Graph | None) -> Counter[str]:
    return (
        Counter(node.target if node.op.startswith("call") else node.op for node in graph.nodes) if graph else Counter()
    )


_Met = tuple[str, str, int]


def _tallies(before: Counter[_Met], after: Counter[_Met]) -> Iterator[Tally]:
    """What was met more often, or less, in one of the two; what grew the most first."""
    keys = [key for key in dict.fromkeys((*before, *after)) if before[key] != after[key]]
    for what, file, line in sorted(keys, key=lambda key: before[key] - after[key]):
        yield Tally(what, before[what, file, line], after[what, file, line], file, line)


def _breaks(run: Run) -> Counter[_Met]:
    """Each as often as it was met."""
    again = (run.breaks[each.first] for each in run.decided.every(BreakAgain) if each.first < len(run.breaks))
    met = (*run.breaks, *again)
    return Counter((found.kind or found.reason.partition("\n")[0], found.file, found.line) for found in met)


def _recompiles(run: Run) -> Counter[_Met]:
    frames = (run.frames.get(found.frame) for found in run.recompiles)
    return Counter((spoken(frame), frame.file, frame.line) for frame in frames if frame is not None)


def _violations(run: Run) -> Counter[_Met]:
    return Counter(
        (f"{found.rule} at {found.node.name} ({found.node.graph.stage})", found.file, found.line)
        for found in run.violations
    )


def _numbers(before: Run, after: Run) -> tuple[NumberChange, ...] | None:
    if before.diff is None or after.diff is None:
        return None
    ours, theirs = (
        {each.name: each for each in (*diff.outputs, *diff.gradients)} for diff in (before.diff, after.diff)
    )
    return tuple(
        NumberChange(name, (one.passed, theirs[name].passed), (one.max_abs, theirs[name].max_abs))
        for name, one in ours.items()
        if name in theirs and (one.passed, one.max_abs) != (theirs[name].passed, theirs[name].max_abs)
    )


def _cached(run: Run) -> Cached:
    outcomes = [each.outcome for answers in run.decided.of(CacheAnswer).values() for each in answers]
    hits = outcomes.count("hit")
    return Cached(hits, hits + outcomes.count("miss"))


def _phases(before: Mapping[str, float], after: Mapping[str, float]) -> list[Times]:
    phases = [Times(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]
    return sorted(phases, key=lambda phase: -abs(phase.change))
