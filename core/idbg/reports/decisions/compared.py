"""What changed from one run to another, in words? The worst first, then the largest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import unified_diff

from idbg.analysis.decisions.compared import Compared, GraphChange, NumberChange, Tally, TargetChange, Times
from idbg.analysis.decisions.kernels_matched import How, KernelChange
from idbg.analysis.decisions.side_by_side import around_changes, side_by_side
from idbg.format.amounts import NOTHING, counted, duration, figure
from idbg.format.verdicts import verdict_words
from idbg.schema.bench import LEAST_CHANGE
from idbg.schema.code import Kernel
from idbg.schema.runs import Run
from idbg.views import earlier_times

SHOWN = 20
"""So many rows of a kind are told as text; how many more there are is said."""

HOW_WORDS: dict[How, str] = {
    "changed": "changed",
    "split": "became several",
    "merged": "became one",
    "regrouped": "grouped otherwise",
    "gone": "only before",
    "new": "only after",
    "same": "the same",
}
"""In the order in which they are told."""

LEAST_SECONDS = 0.05  # a phase that changed by less is noise
_WORST_FIRST = ("failed", "wrong", "empty", "waiting", "violations", "clean")


def text(before: Run, after: Run, found: Compared) -> Iterator[str]:
    """What the second run is made for otherwise, what is worse, what is different, and what it costs."""
    yield f"changed: {changed_words(found)}"
    yield from _section("", verdicts(before, after, found))
    yield from _section("numbers", map(number_words, found.numbers or ()))
    yield from _section("rules broken", map(tally_words, found.violations))
    yield from _section("graph breaks", map(tally_words, found.breaks))
    yield from _section("recompiles", map(tally_words, found.recompiles))
    yield from _section("compiles of a function that one run alone has", frames_words(found))
    yield from _section("latency", [latency_words(found)] if found.latency else ())
    yield kernels_sentence(found)
    yield from _limited(map(kernel_words, sorted(found.different, key=rank)))
    yield from _section("graphs", map(graph_words, found.graphs))
    yield time_sentence(found)
    yield from _limited(f"  {line}" for line in time_lines(before, after, found))


def changed_words(found: Compared) -> str:
    """What the second run is made for otherwise."""
    return "; ".join(map(target_words, found.target)) or "nothing: the same target"


def verdicts(before: Run, after: Run, found: Compared) -> Iterator[str]:
    """Where the two did not come out alike, in a sentence."""
    one, other = found.verdicts
    if one == other and before.cause == after.cause:
        return
    known = "wrong" not in (one, other) or (before.compared and after.compared) or "failed" in (one, other)
    worse = _WORST_FIRST.index(other) < _WORST_FIRST.index(one)
    sign = ("worse" if worse else "better" if one != other else "differently") if known else "not comparable"
    yield f"{sign}: before {_came_of(before, known)}, after {_came_of(after, known)}"
    for name, run in (("before", before), ("after", after)):
        if run.cause is not None:
            yield f"  {name}: {run.cause.message.partition(chr(10))[0]}"


def _came_of(run: Run, known: bool) -> str:
    """Its verdict in words; beside wrong numbers also that its own are not known."""
    return verdict_words(run) + ("" if known or run.compared else ", numbers not compared")


def target_words(change: TargetChange) -> str:
    """ "max_autotune: as torch has it → True"."""
    return f"{change.name}: {change.before} → {change.after}"


def graph_words(change: GraphChange) -> str:
    """One graph: how many nodes, and of which ops there are more or fewer."""
    part = f" ({change.part})" if change.part and change.part != change.stage else ""
    name = f"{change.function} {change.frame} {change.stage}{part}"
    if change.before is None or change.after is None:
        return f"{name}: only {'after' if change.before is None else 'before'}"
    ops = [f"{op} {before} → {after}" for op, before, after in change.ops]
    more = f", and {len(ops) - 6} more" if len(ops) > 6 else ""
    return f"{name}: {change.before} → {counted(change.after, 'node')}: {', '.join(ops[:6])}{more}"


def kernels_sentence(found: Compared) -> str:
    """How many kernels there were, are, and what became of them."""
    before = sum(len(change.before) for change in found.kernels)
    after = sum(len(change.after) for change in found.kernels)
    if not before and not after:
        return "kernels: none in either run"
    of_kind = Counter(change.how for change in found.kernels)
    told = [f"{of_kind[how]} {words}" for how, words in HOW_WORDS.items() if of_kind[how]]
    return f"kernels: {before} → {after}: {', '.join(told)}"


def kernel_words(change: KernelChange) -> str:
    """What became of these kernels."""
    before, after = (" and ".join(map(_kernel, kernels)) for kernels in (change.before, change.after))
    match change.how:
        case "gone" | "new":
            return f"  {HOW_WORDS[change.how]}: {before or after}"
        case "changed" if before.partition(" ")[0] == after.partition(" ")[0]:
            return f"  {before}: {_what(change)}"
        case "changed":
            return f"  {before} → {after}: {_what(change)}"
        case _:
            return f"  {HOW_WORDS[change.how]}: {before} → {after}"


def _what(change: KernelChange) -> str:
    if change.what != "its source":
        return change.what
    lines = side_by_side(change.before[0].source, change.after[0].source)
    return f"{counted(sum(not line.same for line in lines), 'line')} of its source changed"


def _kernel(kernel: Kernel) -> str:
    return f"{kernel.name} ({counted(len(kernel.nodes), 'node')})" if kernel.nodes else kernel.name


def rank(change: KernelChange) -> tuple[int, int]:
    """In the order of HOW_WORDS, but what is one's alone last; of a kind the largest first."""
    size = sum(len(kernel.nodes) for kernel in (*change.before, *change.after))
    return list(HOW_WORDS).index(change.how), -size


def latency_words(found: Compared) -> str:
    """How long a call takes in both, and whether that differs by more than their noise."""
    assert found.latency is not None
    one, other = found.latency
    ratio = other.median / one.median if one.median else 1.0
    is_noise = abs(ratio - 1) <= max(LEAST_CHANGE, one.noise / 2, other.noise / 2)
    verdict = "within the noise" if is_noise else f"{max(ratio, 1 / ratio):.2f}x {'slower' if ratio > 1 else 'faster'}"
    return f"{duration(one.median)} → {duration(other.median)} a call: {verdict}"


def time_sentence(found: Compared) -> str:
    """How long both took, and what stands between them and a fair comparison."""
    said = f"time: {times_words(found.seconds)}"
    if found.cold:
        once = "the first also paid what a process finds out once: its processor, imports"
        return f"{said}, both with empty caches ({once})"
    one, other = found.cached
    if not (one.asked and other.asked):
        return f"{said} (caches may have helped one of them: --cold gives both empty ones)"
    if not one.hits and not other.hits:
        return f"{said}, neither found anything in caches"
    if one.hits == one.asked and other.hits == other.asked:
        return f"{said}, both found all in caches"
    had = f"{one.hits} of {one.asked} entries for the first run, {other.hits} of {other.asked} for the second"
    return f"{said}, not comparable: caches had {had} (--cold gives both empty ones)"


def time_lines(before: Run, after: Run, found: Compared) -> list[str]:
    """What the time was spent on in both; by phase where a run was not told span by span (an older session)."""
    if before.decided.spans and after.decided.spans:
        return list(earlier_times.compared(before, after))
    return [f"{phase.name}: {times_words(phase)}" for phase in large(found.phases)]


def times_words(times: Times) -> str:
    """ "3.2 s → 4.1 s"; "-" where a run has none."""
    one, other = (NOTHING if each is None else duration(1000 * each) for each in (times.before, times.after))
    return f"{one} → {other}"


def source_lines(change: KernelChange, width: int) -> Iterator[str]:
    """The sources of both sides beside each other, in columns of that width, with what is equal left out."""
    left, right = (sources(kernels) for kernels in (change.before, change.after))
    for line in around_changes(side_by_side(left, right)):
        if line is None:
            yield "  ..."
            continue
        mark = " " if line.same else "|"
        yield f"  {line.left_text[:width]:{width}} {mark} {line.right_text[:width]}".rstrip()


def sources(kernels: Iterable[Kernel]) -> str:
    """The source of each, one below the other."""
    return "\n".join(
        kernel.source or f"{kernel.name}: an op of {kernel.language}, without a source" for kernel in kernels
    )


def as_json(before: Run, after: Run, found: Compared) -> dict[str, object]:
    """The same, whole. Of a kernel that changed, the lines as a unified diff."""
    told: dict[str, object] = {name: getattr(found, name) for name in Compared.__struct_fields__}
    kernels = [_kernel_json(change) for change in found.kernels]
    failures = [run.cause for run in (before, after)]
    said = [verdict_words(run) for run in (before, after)]
    outcome = list(verdicts(before, after, found))
    return {**told, "said": said, "outcome": outcome, "kernels": kernels, "failures": failures}


def _kernel_json(change: KernelChange) -> dict[str, object]:
    left, right = (sources(kernels) for kernels in (change.before, change.after))
    lines = unified_diff(left.splitlines(), right.splitlines(), "before", "after", lineterm="")
    return {
        "how": change.how,
        "what": change.what,
        "before": [kernel.name for kernel in change.before],
        "after": [kernel.name for kernel in change.after],
        "nodes": [sum(len(kernel.nodes) for kernel in kernels) for kernels in (change.before, change.after)],
        "diff": "\n".join(lines) if change.before and change.after and change.how != "same" else "",
    }


def number_words(change: NumberChange) -> str:
    """An output: right or wrong in both, and its largest error."""
    passed = ["right" if each else "WRONG" for each in change.passed]
    verdict = passed[0] if passed[0] == passed[1] else f"{passed[0]} → {passed[1]}"
    return f"{change.name}: {verdict}, largest error {figure(change.max_abs[0])} → {figure(change.max_abs[1])}"


def tally_words(tally: Tally) -> str:
    """ "2 → 0  Data-dependent branching   model.py:3"."""
    place = f"   {tally.file}:{tally.line}" if tally.file else ""
    return f"{tally.before} → {tally.after}  {tally.what}{place}"


def frames_words(found: Compared) -> Iterator[str]:
    """The compiles that one run alone has."""
    for change in found.frames:
        frame = change.before or change.after
        assert frame is not None
        side = "before" if change.before else "after"
        yield f"{frame.function} {frame.id}: only {side}   {frame.file}:{frame.line}"


def large(phases: Iterable[Times]) -> list[Times]:
    """Those that changed by more than noise."""
    return [phase for phase in phases if abs(phase.change) >= LEAST_SECONDS]


def _section(head: str, lines: Iterable[str]) -> Iterator[str]:
    told = list(lines)
    if told and head:
        yield f"{head}:"
    yield from _limited(f"  {line}" if head else line for line in told)


def _limited(lines: Iterable[str]) -> Iterator[str]:
    told = list(lines)
    yield from told[:SHOWN]
    if len(told) > SHOWN:
        yield f"  and {len(told) - SHOWN:,} more (all of them: --json)"
