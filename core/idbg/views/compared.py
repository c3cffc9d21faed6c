"""Show what differs between two runs: target, result, numbers, rules, breaks, recompiles, kernels, graphs, time."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from difflib import unified_diff
from functools import lru_cache
from operator import is_
from typing import NamedTuple

from idbg.analysis.decisions.compared import Compared, GraphChange, NumberChange, Tally, Times, compared
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.kernels_matched import How, KernelChange
from idbg.analysis.decisions.side_by_side import side_by_side
from idbg.config.switches import spelled
from idbg.format.amounts import NOTHING, counted, duration, elapsed, few, figure
from idbg.format.verdicts import verdict_words
from idbg.schema import programs
from idbg.schema.bench import LEAST_CHANGE, Latency
from idbg.schema.code import Kernel
from idbg.schema.decisions.inductor import Span
from idbg.schema.runs import Run
from idbg.schema.violations import count as count_violations
from idbg.views.earlier_times import HEATS, USES, changed_uses, compile_times
from idbg.views.tree import Cell, Column, Place, Refs, Row, Section, Sides, Table, Tone, Unfolded, Verdict, words

TITLE = "Comparison"
NO_PAIR = "there is one run: change a switch or compile again, and both are compared"
_HOW: dict[How, str] = {
    "changed": "changed",
    "split": "split",
    "merged": "merged",
    "regrouped": "regrouped",
    "gone": "only before",
    "new": "only after",
    "same": "the same",
}
"""In the order in which they are listed."""
_LEAST_SECONDS = 0.05  # a phase that changed by less is noise
_WORST_FIRST = ("failed", "wrong", "empty", "waiting", "violations", "compiled")
_MANY = 40  # rows of a kind from which they are folded at first where rows fold
_OPS = 6  # of a graph
COLUMNS = ("time of", "before", "after", "change")  # of its table
_COLUMNS = (Column("before", "seconds", 2), Column("after", "seconds", 2), Column("change", "seconds", 1))
Both = tuple[Latency, Latency]


class Outcome(NamedTuple):
    """How the second run's result differs from the first's. `words` is "" where both have the same."""

    verdict: Verdict
    words: str


def view(before: Run, after: Run, latency: Both | None = None, names: tuple[str, str] | None = None) -> Section:
    """The target first, then what is worse, the largest change of each kind, and the time; `latency` of both runs."""
    found = differences(before, after)
    head = _heads(before, after, found, names or (f"run {before.number}", f"run {after.number}"))
    called = [Row("latency", words(f"latency: {_latency(*latency)}"))] if latency is not None else []
    body = [*head, *called, *_groups(found), Row("time", words((_time_sentence(found), "strong")))]
    times = Table(_COLUMNS, list(_times(before, after, found)), "time of")
    result = outcome(before, after)
    return Section(TITLE, summary(before, after), count(before, after), result.verdict, (*body, times))


def summary(before: Run, after: Run) -> str:
    """What is worse, what there is more or less of, kernels and time."""
    found = differences(before, after)
    counts = [
        _changed(len(before.frames), len(after.frames), "compile"),
        _changed(before.times_broken, after.times_broken, "graph break"),
        _changed(len(before.recompiles), len(after.recompiles), "recompile"),
        _changed(count_violations(before.violations), count_violations(after.violations), "violation"),
    ]
    time = f"time: {_seconds(found.seconds)}"
    return "; ".join(filter(None, (outcome(before, after).words, *counts, _kernels_sentence(found), time)))


def count(before: Run, after: Run) -> int:
    """How much differs: fields of the target, numbers, rules, breaks, recompiles, compiles, kernels and graphs."""
    found = differences(before, after)
    kinds: tuple[Sequence[object], ...] = (
        *(found.target, found.numbers or (), found.violations, found.breaks, found.recompiles),
        *(found.frames, found.different, found.graphs),
    )
    return sum(map(len, kinds))


def outcome(before: Run, after: Run) -> Outcome:
    """Whether the second run is worse, better, or differs otherwise; what was not compared is not known."""
    one, other = _comparable_verdict(before), _comparable_verdict(after)
    if one == other and before.cause == after.cause:
        return Outcome("ok", "")
    known = "wrong" not in (one, other) or (before.compared and after.compared) or "failed" in (one, other)
    worse = _WORST_FIRST.index(other) < _WORST_FIRST.index(one)
    sign = ("worse" if worse else "better" if one != other else "different") if known else "not comparable"
    verdict: Verdict = "unknown" if not known else "error" if worse else "ok" if one != other else "warning"
    return Outcome(verdict, f"{sign}: before {_result(before, known)}, after {_result(after, known)}")


def _comparable_verdict(run: Run) -> programs.Verdict:
    """Its verdict; a run is not better because its numbers were compared too."""
    return "compiled" if run.verdict == "clean" else run.verdict


def _result(run: Run, known: bool) -> str:
    """Its verdict in words; beside wrong numbers also that its own are not known."""
    return verdict_words(run) + ("" if known or run.compared else ", numbers not compared")


# ---------------------------------------------------------------- differences, found once


class _Pair:
    """Two runs that have ended: they do not change."""

    def __init__(self, before: Run, after: Run) -> None:
        self.runs = before, after
        self.known = tuple((run.number, run.started, run.ended) for run in self.runs)

    def __hash__(self) -> int:
        return hash(self.known)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Pair):
            return False
        return self.known == other.known and all(map(is_, self.runs, other.runs))


@lru_cache(maxsize=8)
def _found(pair: _Pair) -> Compared:
    return compared(*pair.runs)


def differences(before: Run, after: Run) -> Compared:
    """In what two runs that ended differ."""
    return _found(_Pair(before, after))


# ---------------------------------------------------------------- rows


def _heads(before: Run, after: Run, found: Compared, names: tuple[str, str]) -> Iterator[Row]:
    yield Row("runs", words((names[1], "strong"), (" compared with ", "dim"), (names[0], "strong")))
    if not found.target:
        yield Row("target", words(("changed: nothing, the same target", "dim")))
    for change in found.target:
        yield Row(
            ("target", change.name), words((f"changed: {change.name}: {change.before} → {change.after}", "accent"))
        )
    tone: Tone = "reject" if outcome(before, after).verdict == "error" else ""
    for name, run in (("before", before), ("after", after)):
        if run.cause is not None and outcome(before, after).words:
            yield Row(("cause", name), words((f"{name}: {run.cause.first_line}", tone)))


def _groups(found: Compared) -> Iterator[Row]:
    kinds: tuple[tuple[str, list[Row]], ...] = (
        ("numbers", [_number(each) for each in found.numbers or ()]),
        ("rules broken", [_tally(each) for each in found.violations]),
        ("graph breaks", [_tally(each) for each in found.breaks]),
        ("recompiles", [_tally(each) for each in found.recompiles]),
        ("compiles of a function that one run alone has", list(_frames(found))),
        ("kernels that differ", [_kernel_row(each) for each in sorted(found.different, key=_rank)]),
        ("graphs", [_graph(each) for each in found.graphs]),
    )
    for title, rows in kinds:
        if rows:
            is_open: Unfolded = "all" if len(rows) <= _MANY else "text"
            yield Row(("section", title), words((title, "strong")), rows=rows, open=is_open, opens="fold")


def _number(change: NumberChange) -> Row:
    """An output: right or wrong in both, and its largest error."""
    passed = ["right" if each else "WRONG" for each in change.passed]
    verdict = passed[0] if passed[0] == passed[1] else f"{passed[0]} → {passed[1]}"
    error = f"largest error {figure(change.max_abs[0])} → {figure(change.max_abs[1])}"
    return Row(("number", change.name), words(f"{change.name}: ", (verdict, _tone(*change.passed)), f", {error}"))


def _tone(before: bool, after: bool) -> Tone:
    return "" if before == after else "clean" if after else "reject"


def _tally(tally: Tally) -> Row:
    """What was met more often, or less, at a line of the user's."""
    tone: Tone = "reject" if tally.after > tally.before else "clean"
    return Row(
        ("tally", tally.what, tally.file, tally.line),
        words((f"{tally.before} → {tally.after}  {tally.what}", tone), *_at(tally.file, tally.line)),
        refs=Refs(file=tally.file, line=tally.line),
        opens="edit" if tally.file else "",
    )


def _at(file: str, line: int) -> tuple[str | Place, ...]:
    return ("   ", Place(file, line)) if file else ()


def _frames(found: Compared) -> Iterator[Row]:
    for change in found.frames:
        frame = change.before or change.after
        assert frame is not None
        text = f"{spoken(frame)} {frame.id}: only {'before' if change.before else 'after'}"
        refs = Refs(file=frame.file, line=frame.line)
        yield Row(("frame", frame.id, text), words(text, *_at(frame.file, frame.line)), refs=refs, opens="edit")


def _graph(change: GraphChange) -> Row:
    """One graph: how many nodes, and of which ops there are more or fewer."""
    part = f" ({change.part})" if change.part and change.part != change.stage else ""
    name = f"{change.function} {change.frame} {change.stage}{part}"
    if change.before is None or change.after is None:
        text = f"only {'after' if change.before is None else 'before'}"
    else:
        ops = [f"{op} {before} → {after}" for op, before, after in change.ops]
        text = f"{change.before} → {counted(change.after, 'node')}: {few(ops, _OPS, ', and {:,} more')}"
    return Row(("graph", change.frame, change.stage, change.part), words(f"{name}: {text}"))


def _kernel_row(change: KernelChange) -> Row:
    key: Hashable = ("kernel", *(kernel.name for kernel in (*change.before, *change.after)))
    text = _kernel_words(change)
    before, after = (
        " and ".join(kernel.name for kernel in kernels) or "none" for kernels in (change.before, change.after)
    )
    language = next((kernel.language for kernel in (*change.before, *change.after) if kernel.source), "")
    sides = Sides(*_sources(change), before, after, language)
    return Row(key, words(text), opens="sides", copied=text, sides=sides)


def _kernel_words(change: KernelChange) -> str:
    """What became of these kernels."""
    before, after = (" and ".join(map(_kernel, kernels)) for kernels in (change.before, change.after))
    match change.how:
        case "gone" | "new":
            return f"{_HOW[change.how]}: {before or after}"
        case "changed" if before.partition(" ")[0] == after.partition(" ")[0]:
            return f"{before}: {_what(change)}"
        case "changed":
            return f"{before} → {after}: {_what(change)}"
        case _:
            return f"{_HOW[change.how]}: {before} → {after}"


def _what(change: KernelChange) -> str:
    if change.what != "its source":
        return change.what
    lines = side_by_side(change.before[0].source, change.after[0].source)
    return f"{counted(sum(not line.same for line in lines), 'line')} of its source changed"


def _kernel(kernel: Kernel) -> str:
    return f"{kernel.name} ({counted(len(kernel.nodes), 'node')})" if kernel.nodes else kernel.name


def _rank(change: KernelChange) -> tuple[int, int]:
    """In the order of _HOW; of a kind the largest first."""
    size = sum(len(kernel.nodes) for kernel in (*change.before, *change.after))
    return list(_HOW).index(change.how), -size


def _kernels_sentence(found: Compared) -> str:
    before = sum(len(change.before) for change in found.kernels)
    after = sum(len(change.after) for change in found.kernels)
    if not before and not after:
        return "kernels: none in either run"
    of_kind = Counter(change.how for change in found.kernels)
    return f"kernels: {before} → {after}: {', '.join(f'{of_kind[how]} {_HOW[how]}' for how in _HOW if of_kind[how])}"


def _sources(change: KernelChange) -> tuple[str, str]:
    """The source of each kernel of both sides, one below the other."""
    one, other = ("\n".join(map(_source, kernels)) for kernels in (change.before, change.after))
    return one, other


def _source(kernel: Kernel) -> str:
    return kernel.source or f"{kernel.name}: an op of {kernel.language}, without a source"


# ---------------------------------------------------------------- time


def _latency(one: Latency, other: Latency) -> str:
    """How long a call takes in both, and whether that differs by more than their noise."""
    ratio = other.median / one.median if one.median else 1.0
    is_noise = abs(ratio - 1) <= max(LEAST_CHANGE, one.noise / 2, other.noise / 2)
    verdict = "within the noise" if is_noise else f"{max(ratio, 1 / ratio):.2f}x {'slower' if ratio > 1 else 'faster'}"
    return f"{duration(one.median)} → {duration(other.median)} a call: {verdict}"


def _time_sentence(found: Compared) -> str:
    """How long both took, and whether caches make that no fair comparison."""
    time = f"time: {_seconds(found.seconds)}"
    if found.cold:
        once = "the first also includes what a process does once: probing its processor, imports"
        return f"{time}, both with empty caches ({once})"
    one, other = found.cached
    if not (one.lookups and other.lookups):
        return f"{time} (caches may have helped one of them: --cold runs both with empty ones)"
    if not one.hits and not other.hits:
        return f"{time}, no cache hit in either"
    if one.hits == one.lookups and other.hits == other.lookups:
        return f"{time}, every cache lookup hit in both"
    hits = f"{one.hits} of {one.lookups} lookups hit in the first run, {other.hits} of {other.lookups} in the second"
    return f"{time}, not comparable: {hits} (--cold runs both with empty caches)"


def _times(before: Run, after: Run, found: Compared) -> Iterator[Row]:
    """What the time was spent on in both; by phase where spans were not recorded (an older session)."""
    if not (before.decided.last(Span) and after.decided.last(Span)):
        large = [phase for phase in found.phases if abs(phase.change) >= _LEAST_SECONDS]
        yield from (_time(phase.name, phase.before, phase.after) for phase in large)
        return
    (one, heat), (other, heat_after) = compile_times(before), compile_times(after)
    yield _time("compile time", one, other, "strong")
    yield from (_time(USES[each.use], each.before, each.after) for each in changed_uses(before, after))
    if heat != heat_after:
        yield Row("heat", words((f"the first was {HEATS[heat]}; the second {HEATS[heat_after]}", "dim")))


def _time(name: str, before: float | None, after: float | None, tone: Tone = "") -> Row:
    cells = (Cell(before), Cell(after), Cell((after or 0.0) - (before or 0.0)))
    return Row(("time", name), words((name, tone)), cells)


def _seconds(times: Times) -> str:
    """ "3.2 s → 4.1 s"; "-" where a run has none."""
    one, other = (NOTHING if each is None else duration(1000 * each) for each in (times.before, times.after))
    return f"{one} → {other}"


def _changed(before: int, after: int, noun: str) -> str:
    return f"{before} → {counted(after, noun)}" if before != after else ""


# ---------------------------------------------------------------- records


def as_json(before: Run, after: Run, latency: Both | None = None) -> dict[str, object]:
    """All differences. Of a kernel that changed, the lines as a unified diff."""
    found = differences(before, after)
    runs = (before, after)
    return {
        **{name: getattr(found, name) for name in Compared.__struct_fields__},
        "latency": latency,
        "summary": summary(before, after),
        "said": [verdict_words(run) for run in runs],
        "outcome": list(_outcome_lines(before, after)),
        "kernels": [_kernel_json(change) for change in found.kernels],
        "failures": [run.cause for run in runs],
    }


def _outcome_lines(before: Run, after: Run) -> Iterable[str]:
    if line := outcome(before, after).words:
        yield line
        for name, run in (("before", before), ("after", after)):
            if run.cause is not None:
                yield f"  {name}: {run.cause.first_line}"


def _kernel_json(change: KernelChange) -> dict[str, object]:
    left, right = _sources(change)
    lines = unified_diff(left.splitlines(), right.splitlines(), "before", "after", lineterm="")
    return {
        "how": change.how,
        "what": change.what,
        "before": [kernel.name for kernel in change.before],
        "after": [kernel.name for kernel in change.after],
        "nodes": [sum(len(kernel.nodes) for kernel in kernels) for kernels in (change.before, change.after)],
        "diff": "\n".join(lines) if change.before and change.after and change.how != "same" else "",
    }


def run_words(run: Run) -> str:
    """What tells a run from the others: what it was made with, and what came of it."""
    target = run.target
    own = [f"{name}={spelled(value)}" for name, value in {**target.options, **target.settings}.items()]
    own += [f"{name} {value}" for name in ("mode", "stance") if (value := getattr(target, name))]
    own += ["cold"] if target.cold else []
    return f"{run.backend}, {', '.join(own) or 'torch defaults'}: {verdict_words(run)}, {elapsed(run.seconds)}"
