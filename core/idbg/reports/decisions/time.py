"""Where did the time of a compile go, what dominated, and what helps?"""

from collections.abc import Iterable, Iterator, Sequence

from idbg.analysis.decisions import times
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.times import Heat, Spent, Timing, Use
from idbg.format.amounts import counted, share
from idbg.format.file_names import near_place
from idbg.reports.decisions.time_help import helps
from idbg.schema.decisions.times import Span
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run

WORDS: dict[Use, str] = {
    "cpp": "building C++ kernels",
    "cpu check": "finding out which vector instructions can be used",
    "triton": "building Triton kernels",
    "autotuning": "autotuning",
    "dynamo": "Dynamo's tracing of Python",
    "guards": "making guards",
    "aot": "AOTAutograd's tracing to ATen",
    "passes": "passes over graphs",
    "lowering": "lowering",
    "scheduling": "scheduling and fusion",
    "codegen": "writing the code of kernels",
    "caches": "caches: their keys, and loading what they hold",
    "idbg": "idbg, looking at graphs",
    "other": "other parts",
    "unnamed": "what torch gives no name to",
}
HEATS: dict[Heat, str] = {
    "cold": "cold: Inductor made the code of every graph",
    "warm": "warm: Inductor found the code of every graph in its cache",
    "mixed": "partly warm: Inductor found the code of some graphs in its cache",
    "": "no code came of Inductor",
}
LINES = 60  # of the tree, in text
BUILDS = 10  # kernels, in text
_LEAST = 0.005  # of the time: less is not shown in text
_AGAIN = 0.2  # of the time: recompiles that took less are left to --type recompiles


def seconds_words(seconds: float) -> str:
    """ "12.3 s", "0.42 s", "3 ms"."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return (
        f"{seconds:.2f} s"
        if seconds >= 0.1
        else f"{1000 * seconds:.2g} ms"
        if seconds < 0.01
        else f"{1000 * seconds:.0f} ms"
    )


def text(run: Run) -> Iterable[str]:
    """What dominated and what helps; what the time was spent on; the tree; the slowest builds."""
    timings = times.tree(run)
    spent = times.spent(timings)
    if not spent:
        yield "nothing was compiled: no time went into it"
        return
    total = sum(each.seconds for each in spent)
    yield headline(run, spent)
    yield from dominating(run, timings)
    yield ""
    yield f"{'':2}{'spent on':<52}{'time':>9}  share"
    for each in spent:
        if each.share >= _LEAST:
            yield f"{'':2}{WORDS[each.use]:<52}{seconds_words(each.seconds):>9}  {share(each.share)}"
    yield ""
    yield from _tree_lines(run, timings, total)
    yield from _build_lines(timings)


def headline(run: Run, spent: Iterable[Spent]) -> str:
    """How long compiling took, and whether caches had the code."""
    return f"compiling took {seconds_words(sum(each.seconds for each in spent))}; {HEATS[times.heat(run)]}"


def dominating(run: Run, timings: Sequence[Timing]) -> Iterator[str]:
    """What the largest part of the time went into, in a sentence, and a line for each thing that helps; then, in
    another, what compiling frames again took: that is over all rows of the table.
    """
    spent = times.spent(timings)
    total = sum(each.seconds for each in spent)
    for largest in [each for each in spent if each.use not in ("unnamed", "other")][:1]:
        named = "the largest part" if largest is spent[0] else "the largest part that has a name"
        part = "most of it" if largest.share > 0.5 else named
        yield f"{part}: {WORDS[largest.use]}: {seconds_words(largest.seconds)}, {share(largest.share)}"
        yield from (f"  {line}" for line in helps(run, timings, largest))
    seconds, compiles = times.again(timings)
    if compiles and seconds > _AGAIN * total:
        yield f"{counted(compiles, 'recompile')} took {seconds_words(seconds)} of it, {share(seconds / total)}"
        yield "  why each was: idbg analyze --type recompiles"


def span_words(span: Span, frame: Frame | None = None) -> str:
    """A span by its name and what it is of; a frame's with its function and place."""
    words = f"{span.name} {span.what}" if span.what else span.name
    if span.times > 1:
        words += f" x{span.times:,}"
    if span.nodes is not None and span.nodes[0] != span.nodes[1]:
        words += f", {span.nodes[0]:,} to {span.nodes[1]:,} nodes"
    elif span.nodes is not None:
        words += f", {counted(span.nodes[0], 'node')}"
    return f"{words}   {spoken(frame)} {near_place(frame.file, frame.line)}".rstrip() if frame else words


def as_json(run: Run) -> object:
    """Seconds of each use, by name, and each span in order; `explained`: the share of the time that has a name."""
    timings = times.tree(run)
    spent = times.spent(timings)
    return {
        "seconds": sum(each.seconds for each in spent),
        "explained": explained(spent),
        "heat": times.heat(run),
        "dominating": list(dominating(run, timings)),
        "spent": [{"use": each.use, "seconds": each.seconds, "share": each.share} for each in spent],
        "by_name": times.by_name(timings),
        "builds": [
            {"kernel": each.span.what, "compiler": each.span.name, "seconds": each.seconds, "ended": not each.lasts}
            for each in times.builds(timings)
        ],
        "phases": run.phases,
        "spans": [
            {"span": each.span, "depth": each.depth, "own": each.own, "seconds": each.seconds, "ended": not each.lasts}
            for each in timings
        ],
    }


def explained(spent: Iterable[Spent]) -> float | None:
    """The share of the compiles' time that has a name; None where nothing was compiled."""
    shares = {each.use: each.share for each in spent}
    return 1 - shares.get("unnamed", 0.0) if shares else None


def compared(before: Run, after: Run) -> Iterator[str]:
    """How much longer or shorter the second run took to compile, and what for; which of them was cold."""
    trees = times.tree(before), times.tree(after)
    totals = [sum(each.seconds for each in times.spent(timings)) for timings in trees]
    heats = times.heat(before), times.heat(after)
    yield f"compile time: {seconds_words(totals[0])}, then {seconds_words(totals[1])}"
    if heats[0] != heats[1]:
        yield f"  the first was {HEATS[heats[0]]}; the second {HEATS[heats[1]]}"
    for change in times.compared(*trees):
        if abs(change.more) >= max(_LEAST * max(totals), 0.001):
            took = ["none" if each is None else seconds_words(each) for each in (change.before, change.after)]
            sign = "+" if change.more > 0 else "-"
            yield f"  {WORDS[change.use]:<52}{took[0]:>9}{took[1]:>9}  {sign}{seconds_words(abs(change.more))}"


def _tree_lines(run: Run, timings: Sequence[Timing], total: float) -> Iterator[str]:
    shown = [timing for timing in timings if timing.seconds >= _LEAST * total or timing.lasts]
    for timing in shown[:LINES]:
        frame = (
            run.frames.get(timing.span.frame) if timing.span.name in ("frame", "frame compile", "backward") else None
        )
        beside = " (beside)" if timing.beside else ""
        open_words = " (not ended)" if timing.lasts else ""
        name = f"{'':{2 * min(timing.depth, 20)}}{span_words(timing.span, frame)}{beside}{open_words}"
        yield f"{timing.seconds:>9.3f} s  {timing.own:>8.3f} s  {name}"
    if len(shown) > LINES:
        yield f"  and {len(shown) - LINES:,} more that took {share(_LEAST)} or more (all: --json, --trace)"


def _build_lines(timings: Sequence[Timing]) -> Iterator[str]:
    builds = times.builds(timings)
    if not builds:
        return
    took = sum(each.seconds for each in builds)
    at_once = 1 + max(lane for _, lane in times.lanes(builds))
    yield ""
    yield f"{counted(len(builds), 'build')} of kernels took {seconds_words(took)}, at most {at_once} at a time"
    for each in builds[:BUILDS]:
        yield f"{each.seconds:>9.3f} s  {each.span.what}   {each.span.name}" + (" (not ended)" if each.lasts else "")
    if len(builds) > BUILDS:
        yield f"  and {len(builds) - BUILDS:,} more (all: --json)"
