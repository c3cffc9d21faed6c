"""Show a run in a few rows: while it compiles its phases, afterwards what came of it and what to look at next."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Heat, Use
from idbg.format.amounts import counted, seconds, wait
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.kernels import language_of
from idbg.format.verdicts import verdict_words
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.runs import Run
from idbg.views import breaks, kernel_times, recompiles, time
from idbg.views.blame import blame_sentence, where_to_ask
from idbg.views.earlier_times import compile_times, past
from idbg.views.facts import dotted, fact
from idbg.views.tree import (
    NO_OPTIONS,
    VERDICT_TONES,
    Cell,
    Column,
    Options,
    Refs,
    Row,
    Section,
    Table,
    words,
)

TITLE = "In short"
_LONGEST = 3  # uses of the compile's time are named
_LEAST = 14  # cells of a phase
_ORDER: tuple[Use, ...] = (
    *("dynamo", "aot", "passes", "lowering", "scheduling", "codegen", "cpu check", "cpp", "triton", "autotuning"),
    "guards",
)
"""The phases of a compile, in the order in which a frame comes to them."""
_EVERY: frozenset[Use] = frozenset({"dynamo", "aot", "passes", "lowering", "scheduling", "codegen"})
"""Those that each graph comes to where Inductor compiles it."""
_RECORDED: dict[str, Use] = {
    "dynamo": "dynamo",
    "joint passes": "passes",
    "post-grad passes": "passes",
    "lowering": "lowering",
    "scheduling": "scheduling",
    "c++ compile": "cpp",
    "triton compile": "triton",
}
"""The phases whose usual seconds other sessions have, which contain no other."""
# short enough that both times have room beside them in a third of 120 columns
_SHORT: dict[Use, str] = {
    "dynamo": "Dynamo",
    "aot": "AOTAutograd",
    "passes": "passes",
    "lowering": "lowering",
    "scheduling": "fusion",
    "codegen": "codegen",
    "cpu check": "CPU check",
    "cpp": "C++",
    "triton": "Triton",
    "autotuning": "autotuning",
    "guards": "guards",
    "caches": "caches",
}
_HEATS: dict[Heat, str] = {"cold": "cold", "warm": "warm", "mixed": "partly warm"}
_COLUMNS = (Column("time", "seconds", 2), Column("usually", "seconds", 1))


def compiling(run: Run, now: float, options: Options = NO_OPTIONS, usual: float | None = None) -> Section:
    """A row a phase: a tick at each that is over, its seconds so far, and how long it usually takes. `usual` is the
    time of all of such a run.
    """
    timings = times.tree(run, now)
    took = {each.use: each.seconds for each in times.spent(timings)}
    lasting = [use for use, each in zip(times.uses(timings), timings, strict=True) if each.lasts and not each.beside]
    active = lasting[-1] if lasting else ""
    typical = _typical(options)
    listed = [use for use in _ORDER if use in took or use in typical or (run.backend == "inductor" and use in _EVERY)]
    began = timings[0].span.began - run.started if timings else None
    loaded = next((each for each in timings if each.span.name == "program"), None)
    rows = [_phase("start", "torch starts", began if timings else now - run.started, done=bool(timings))]
    if loaded is not None:
        rows.append(_phase("load", "program", loaded.seconds, done=not loaded.lasts))
    rows += [_phase(use, _SHORT[use], took.get(use), typical.get(use), done=use != active) for use in listed]
    whole = f", usually {wait(usual)}" if usual is not None else ""
    builds = sum(each.lasts and each.beside for each in timings)
    beside = f", {counted(builds, 'build')} of kernels beside it" if builds else ""
    summary = f"compiling for {wait(max(now - run.started, 0.0))}{whole}{beside}"
    return Section(TITLE, summary, body=(Table(_COLUMNS, rows, "phase", least=_LEAST),))


def _typical(options: Options) -> dict[Use, float]:
    """Seconds of each phase: the median of this session's earlier runs, else what other sessions took."""
    known: dict[Use, float] = {}
    for name, use in _RECORDED.items():
        if name in options.typical:
            known[use] = known.get(use, 0.0) + options.typical[name]
    before: dict[Use, list[float]] = {}
    for timings, _ in past(options):
        for each in times.spent(timings):
            before.setdefault(each.use, []).append(each.seconds)
    return known | {use: median(took) for use, took in before.items()}


def _phase(key: str, name: str, took: float | None, usual: float | None = None, *, done: bool) -> Row:
    """One phase: over, in progress, or still to come."""
    if took is None:
        sign, tone = " ", "dim"
    else:
        sign, tone = (VERDICT_SIGNS["clean"], "clean") if done else (MARKS["arrow"], "accent")
    name_tone = "dim" if took is None else "" if done else "strong"
    cells = (Cell("" if took is None else took), Cell("" if usual is None else usual, "dim"))
    return Row(("phase", key), words((f"{sign} ", tone), (name, name_tone)), cells)  # type: ignore[arg-type]


def view(run: Run, kernels: KernelTimes | None = None, *, keys: bool = False) -> Section:
    """The verdict, kernels, compile time, breaks, recompiles and the slowest kernel. `keys`: the reader can press keys
    that compile, compare and measure.
    """
    sign, tone = VERDICT_SIGNS[run.looks], VERDICT_TONES[run.looks]
    rows = [
        fact("result", f"{sign} {verdict_words(run)}", tone),
        *_kernels(run),
        *_time(run),
        *_frames(run),
        *_slowest(run, kernels, keys=keys),
        *_numbers(run, keys=keys),
    ]
    return Section(TITLE, "", len(rows), body=tuple(rows))


def _kernels(run: Run) -> Iterator[Row]:
    if not run.codes:
        yield fact("kernels", f"none: {run.backend} generated no code" if run.graphs else "none: no graph was captured")
        return
    languages = Counter(map(language_of, run.kernels))
    calls = sum(len(kernel.calls) for kernel in run.kernels)
    kinds = ", ".join(f"{count:,} {language}" for language, count in languages.most_common())
    yield fact("kernels", dotted(kinds, counted(calls, "launch")))


def _time(run: Run) -> Iterator[Row]:
    spent = times.spent(times.tree(run))
    if not spent:
        yield fact("compile", time.view(run).summary)
        return
    took, heat = compile_times(run)
    named = [f"{_SHORT[each.use]} {seconds(each.seconds)}" for each in spent if each.use in _SHORT][:_LONGEST]
    yield fact("compile", f"{seconds(took)}{f', {_HEATS[heat]}' if heat else ''}: {', '.join(named)}")


def _frames(run: Run) -> Iterator[Row]:
    found = [breaks.view(run), recompiles.view(run)]
    words = ", ".join(section.summary.partition(":")[0].partition(", most")[0] for section in found)
    words = words.replace("graph break", "break")
    yield fact("breaks", words, "fallback" if any(section.verdict == "warning" for section in found) else "")


def _slowest(run: Run, kernels: KernelTimes | None, *, keys: bool) -> Iterator[Row]:
    if kernels is not None and kernels.kernels:
        slowest = kernels.by_time[0]
        row = fact("slowest", f"{slowest.name}  {kernel_times.sentence(slowest)}")
        refs = Refs(kernel=(slowest.frame, slowest.part, slowest.name))
        yield Row(row.key, row.words, refs=refs, opens="kernel", hangs=True)
    elif run.codes:
        yield fact("slowest", "not measured" + ": R times them" * keys, "dim")


def _numbers(run: Run, *, keys: bool) -> Iterator[Row]:
    if run.diff is None:
        yield fact("numbers", "not compared" + ": d compares" * keys, "dim")
    elif words := blame_sentence(run.diff) or where_to_ask(run.diff, "D" if keys else "idbg diff --per-kernel"):
        yield fact("numbers", words, "reject" if run.numbers == "wrong" else "fallback")


def next_keys(keys: Sequence[tuple[str, str]]) -> Row:
    """What to press next: each key with what it does."""
    return fact("next", dotted(*(f"{key} {what}" for key, what in keys)), "accent")
