"""Compute where the time of a compile went: by span, by name, by use, and against another run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from idbg.schema.decisions.inductor import Span
from idbg.schema.runs import Run

OURS = frozenset({"program", "run"})
"""What we time around torch's work: the program's own import, and its run."""
KERNEL_BUILDS = frozenset({"c++ compile", "triton compile"})
_COMPILES = frozenset({"frame", "frame compile", "backward"})
_HOLD_OTHERS = ("backend", "forward", "backward graph", "inductor", "graph compile", "to a function", "to a module")


@dataclass(frozen=True)
class Timing:
    """A span in its place. `own`: its seconds without what is in it on the same thread. `lasts`: no end was
    recorded, and its seconds are those so far, or until its run was over. `beside`: it went on beside the thread that
    compiles. `builds_triton`: a build of kernels in it is Triton's, as all kernels of its run are.
    """

    span: Span
    depth: int
    seconds: float
    own: float
    lasts: bool = False
    beside: bool = False
    builds_triton: bool = False


@dataclass(frozen=True)
class Row:
    """All spans of one name. `seconds`: of those that are in no other of that name; `own` as of a span."""

    name: str
    times: int
    seconds: float
    own: float
    longest: float


def end_of(run: Run, now: float | None = None) -> float:
    """Until when a span lasts that has not ended, in seconds since the epoch: until now, or until its run was over."""
    known = [span.began + (span.seconds or 0.0) for span in run.decided.last(Span).values()]
    if run.ended is not None:
        known.append(run.started + run.seconds)
    elif now is not None:
        known.append(now)
    return max(known, default=run.started)


def tree(run: Run, now: float | None = None) -> list[Timing]:
    """Each span before those in it, as they began. A span that is in none is at depth 0."""
    spans = run.decided.last(Span)
    inside: dict[int, list[Span]] = {}
    for span in sorted(spans.values(), key=lambda each: (each.began, each.id)):
        # whoever holds another began before it: in a damaged log alone that is not so
        inside.setdefault(span.parent if span.parent in spans and span.parent < span.id else 0, []).append(span)
    end = end_of(run, now)
    languages = {kernel.language for kernel in run.kernels} - {"extern"}
    timings: list[Timing] = []
    waiting = [(span, 0, 0) for span in reversed(inside.get(0, ()))]
    while waiting:
        span, depth, compiling = waiting.pop()
        compiling = span.thread if span.name in _COMPILES else compiling  # a program may compile in any of its threads
        children = inside.get(span.id, ())
        seconds = _seconds(span, end)
        within = sum(_seconds(child, end) for child in children if child.thread == span.thread)
        own, is_beside = max(seconds - within, 0.0), span.thread != compiling
        timings.append(Timing(span, depth, seconds, own, span.seconds is None, is_beside, languages == {"triton"}))
        waiting += [(child, depth + 1, compiling) for child in reversed(children)]
    return timings


def _seconds(span: Span, end: float) -> float:
    return span.seconds if span.seconds is not None else max(end - span.began, 0.0)


def by_name(timings: Iterable[Timing]) -> list[Row]:
    """What has most time of its own first."""
    rows: dict[str, Row] = {}
    path: list[str] = []
    for timing in timings:
        del path[timing.depth :]
        name = timing.span.name
        known = rows.get(name, Row(name, 0, 0.0, 0.0, 0.0))
        rows[name] = Row(
            name,
            known.times + timing.span.times,
            known.seconds + (0.0 if name in path else timing.seconds),
            known.own + timing.own,
            max(known.longest, timing.seconds if timing.span.times == 1 else 0.0),
        )
        path.append(name)
    return sorted(rows.values(), key=lambda row: -row.own)


def builds(timings: Iterable[Timing]) -> list[Timing]:
    """The builds of kernels, the longest first."""
    found = [timing for timing in timings if timing.span.name in KERNEL_BUILDS and timing.span.what]
    return sorted(found, key=lambda timing: -timing.seconds)


Heat = Literal["cold", "warm", "mixed", ""]


def heat(run: Run) -> Heat:
    """Whether Inductor made the code of this run's graphs ("cold"), found it in a cache ("warm"), or both; "" where it
    compiled none.
    """
    names = [span.name for span in run.decided.last(Span).values()]
    lowered = names.count("lowering")
    loaded = max(names.count("load") - lowered, 0)
    if lowered and loaded:
        return "mixed"
    return "cold" if lowered else "warm" if loaded else ""


# ------------------------------------------------------------- what it was spent on

Use = Literal[
    "cpp",
    "cpu check",
    "triton",
    "autotuning",
    "dynamo",
    "guards",
    "aot",
    "passes",
    "lowering",
    "scheduling",
    "codegen",
    "caches",
    "idbg",
    "other",
    "unnamed",
]
"""What a compile's time is spent on. "unnamed": torch does not say, it is somewhere in what holds the rest."""

_USES: Mapping[str, Use] = {
    **dict.fromkeys(("c++ compile", "precompiled header"), "cpp"),
    "cpu check": "cpu check",
    **dict.fromkeys(("triton compile", "CachingAutotuner.slow_precompile_config"), "triton"),
    **dict.fromkeys(("autotuning", "template compile", "CachingAutotuner.coordinate_descent_tuning"), "autotuning"),
    **dict.fromkeys(("dynamo", "attempt", "runtime asserts"), "dynamo"),
    "guards": "guards",
    **dict.fromkeys(("aot autograd", "aot metadata", "joint trace", "shapes", "partitioner"), "aot"),
    **dict.fromkeys(("pre-grad passes", "joint passes", "post-grad passes", "pass"), "passes"),
    "lowering": "lowering",
    **dict.fromkeys(("scheduling", "fusion"), "scheduling"),
    **dict.fromkeys(("codegen", "kernel code", "wrapper code"), "codegen"),
    **dict.fromkeys(("hash of torch", "hash of triton", "from the aot cache", "load", "triton bundle"), "caches"),
    **dict.fromkeys(("cache key", "cache look-up", "cache save"), "caches"),
    "idbg": "idbg",
    **dict.fromkeys((*_COMPILES, *_HOLD_OTHERS), "unnamed"),
}


@dataclass(frozen=True)
class Spent:
    """Seconds of the compiling thread that went into one use, its own and what it waited for."""

    use: Use
    seconds: float
    share: float


def uses(timings: Sequence[Timing]) -> list[Use]:
    """What each span was spent on, in their order. Waiting for kernels is time of their compiler's."""
    path: list[Use] = []
    found: list[Use] = []
    triton = any(timing.builds_triton or timing.span.name == "triton compile" for timing in timings)
    for timing in timings:
        del path[timing.depth :]
        path.append(_use(timing.span.name, path[-1] if path else "unnamed", triton=triton))
        found.append(path[-1])
    return found


def spent(timings: Sequence[Timing]) -> list[Spent]:
    """What the compiles' time was spent on, the most first."""
    seconds: dict[Use, float] = {}
    for timing, use in zip(timings, uses(timings), strict=True):
        if not timing.beside and timing.span.name not in OURS:
            seconds[use] = seconds.get(use, 0.0) + timing.own
    total = sum(seconds.values())
    ordered = sorted(seconds.items(), key=lambda item: -item[1])
    return [Spent(use, took, took / total if total else 0.0) for use, took in ordered]


def _use(name: str, around: Use, *, triton: bool) -> Use:
    """`around`: what is around it; a check of the CPU starts compilers too."""
    if around == "cpu check":
        return around
    if name == "kernel build":
        return "triton" if triton else "cpp"
    return _USES.get(name, "other" if around == "unnamed" else around)


@dataclass(frozen=True)
class Unrolled:
    """A line of the user's from which Dynamo traced many nodes: `of` is how many the frame's graph has."""

    frame: str
    seconds: float
    file: str
    line: int
    nodes: int
    of: int


def unrolled(run: Run, timings: Iterable[Timing]) -> Unrolled | None:
    """The frame that Dynamo traced the longest, and its line with the most nodes; None where no graph tells."""
    traced: dict[str, float] = {}
    for timing in timings:
        if timing.span.name == "dynamo":
            traced[timing.span.frame] = traced.get(timing.span.frame, 0.0) + timing.seconds
    frame = max(traced, key=lambda each: traced[each], default="")
    graph = run.graph(frame, "dynamo")
    if graph is None:
        return None
    lines: dict[tuple[str, int], int] = {}
    calls = [node for node in graph.nodes if node.line and node.op.startswith("call_")]
    for node in calls:
        lines[node.file, node.line] = lines.get((node.file, node.line), 0) + 1
    if not lines:
        return None
    file, line = max(lines, key=lambda place: lines[place])
    return Unrolled(frame, traced[frame], file, line, lines[file, line], len(calls))


def again(timings: Sequence[Timing]) -> tuple[float, int]:
    """Seconds that went into compiling frames that had been compiled before, and how often that was."""
    seconds, times = 0.0, 0
    inside = -1
    for timing in timings:
        if inside >= 0 and timing.depth <= inside:
            inside = -1
        attempt = timing.span.frame.partition("#")[0].rpartition("/")[2]
        if inside < 0 and timing.span.name in _COMPILES and attempt not in ("", "0"):
            inside = timing.depth
            seconds += timing.seconds
            times += timing.span.name != "backward"
    return seconds, times


# ------------------------------------------------------------- against others


@dataclass(frozen=True)
class Change:
    """How long one use took in two runs: None where a run had none of it."""

    use: Use
    before: float | None
    after: float | None

    @property
    def more(self) -> float:
        """Seconds by which the later run took longer."""
        return (self.after or 0.0) - (self.before or 0.0)


def compared(before: Sequence[Timing], after: Sequence[Timing]) -> list[Change]:
    """By what the time was spent on; what differs most first."""
    uses = [{each.use: each.seconds for each in spent(timings)} for timings in (before, after)]
    changes = [Change(use, uses[0].get(use), uses[1].get(use)) for use in {**uses[0], **uses[1]}]
    return sorted(changes, key=lambda change: -abs(change.more))


def typical(past: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of each phase, of the earlier runs that had it: seconds."""
    took: dict[str, list[float]] = {}
    for phases in past:
        for name, seconds in phases.items():
            took.setdefault(name, []).append(seconds)
    return {name: median(values) for name, values in took.items()}


# ------------------------------------------------------------- as a picture


@dataclass(frozen=True)
class Box:
    """A span as a stretch of cells in a row of a flame view."""

    timing: Timing
    row: int
    start: int
    length: int


def layout(timings: Sequence[Timing], width: int, under: int = 0) -> list[Box]:
    """A flame view of `width` cells: the compiling thread's spans by depth, and below it what went on beside it, each
    in the first row that is free. `under`: only what is in this span, over the whole width. What is shorter than a cell
    takes one that is free, or has none; what is counted together has no place of its own.
    """
    shown = _within(timings, under)
    if not shown or width < 1:
        return []
    top = min(timing.depth for timing in shown)
    begin = min(timing.span.began for timing in shown)
    whole = max(max(timing.span.began + timing.seconds for timing in shown) - begin, 1e-9)
    free: dict[int, int] = {}  # a row's first cell that is free

    def placed(timing: Timing, row: int) -> Box | None:
        start = max(int((timing.span.began - begin) / whole * width), free.get(row, 0))
        end = min(round((timing.span.began + timing.seconds - begin) / whole * width), width)
        if start >= width or (end <= start and free.get(row, 0) > start):
            return None
        length = max(end - start, 1)
        free[row] = start + length
        return Box(timing, row, start, length)

    single = [timing for timing in shown if timing.span.times == 1]
    boxes = [placed(timing, timing.depth - top) for timing in single if not timing.beside]
    below = 1 + max((timing.depth - top for timing in single if not timing.beside), default=-1)
    for timing, lane in lanes(timing for timing in single if timing.beside):
        boxes.append(placed(timing, below + lane))
    return [box for box in boxes if box is not None]


def _within(timings: Sequence[Timing], under: int) -> list[Timing]:
    if not under:
        return list(timings)
    at = next((at for at, timing in enumerate(timings) if timing.span.id == under), None)
    if at is None:
        return []
    end = next((n for n in range(at + 1, len(timings)) if timings[n].depth <= timings[at].depth), len(timings))
    return list(timings[at:end])


def lanes(timings: Iterable[Timing]) -> list[tuple[Timing, int]]:
    """What went on side by side, as it began, each with the lowest lane that is free then."""
    ends: list[float] = []
    placed: list[tuple[Timing, int]] = []
    for timing in sorted(timings, key=lambda each: (each.span.began, each.depth)):
        end = timing.span.began + timing.seconds
        lane = next((lane for lane, until in enumerate(ends) if until <= timing.span.began), len(ends))
        ends[lane : lane + 1] = [end]
        placed.append((timing, lane))
    return placed
