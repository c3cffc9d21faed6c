"""Show what was found in which cache, and of each miss why: what is new in the key."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from idbg.analysis.decisions.caches import ways_out
from idbg.format.amounts import counted, duration
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.decisions.inductor import CacheAnswer, CacheName, CacheOutcome, Differs
from idbg.schema.runs import Run
from idbg.views.advice import MAY
from idbg.views.frame_graphs import compile_words
from idbg.views.tree import NO_OPTIONS, Options, Refs, Row, Section, Tone, kernel_refs, words

TITLE = "Caches"
NAMES: dict[CacheName, str] = {
    "fx_graph": "FX graph cache",
    "aot_autograd": "AOTAutograd cache",
    "autotune": "autotune cache",
    "triton": "Triton cache",
    "kernel": "C++ kernels",
}
LOOKS: dict[CacheOutcome, tuple[str, Tone]] = {
    "hit": (VERDICT_SIGNS["clean"], "clean"),
    "miss": (SEVERITY_SIGNS["fallback"], "fallback"),
    "bypass": (SEVERITY_SIGNS["fallback"], "fallback"),
    "off": (SEVERITY_SIGNS["slow"], "dim"),
}
NOTHING = "no cache was used: Inductor lowered nothing"
_LEAST = 60  # characters of a value beside which it still reads as a sentence


class Answer(NamedTuple):
    """One answer of a frame, and why in a sentence."""

    frame: str
    answer: CacheAnswer
    why: str

    @property
    def of_run(self) -> bool:
        """Whether it holds for the whole run, for one reason: it need not be repeated for each frame."""
        return self.answer.outcome == "off" and not self.answer.part and not self.answer.what


def answers(run: Run) -> list[Answer]:
    """Every answer of the run, in the order in which they came."""
    return [Answer(frame, answer, why(answer)) for frame, answer in run.decided.with_frames(CacheAnswer)]


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """How often each cache had an entry; then compile by compile each answer, those about kernels by outcome."""
    every = answers(run)
    if not every:
        return Section(TITLE, NOTHING)
    body = [
        _of_cache(cache, mine) for cache in NAMES if (mine := [each for each in every if each.answer.cache == cache])
    ]
    single = [each for each in every if not each.of_run]
    for frame, part in dict.fromkeys((each.frame, each.answer.part) for each in single):
        known = run.frames.get(frame)
        mine = [each for each in single if (each.frame, each.answer.part) == (frame, part)]
        refs = Refs(frame=frame, file=known.file, line=known.line) if known is not None else Refs(frame=frame)
        shown = compile_words(run, frame, part)
        body.append(Row(("cache of", frame, part), shown, rows=list(_answers(run, mine)), open="all", refs=refs))
    hits = sum(each.answer.outcome == "hit" for each in every)
    summary = f"caches: {hits:,} of {counted(len(every), 'lookup')} hit"
    verdict = "warning" if any(each.answer.outcome == "bypass" for each in every) else "ok"
    return Section(TITLE, summary, count(run), verdict, tuple(body))  # type: ignore[arg-type]  # a literal


def count(run: Run) -> int:
    """Misses and bypasses."""
    return sum(answer.outcome in ("miss", "bypass") for answer in run.decided.every(CacheAnswer))


def _of_cache(cache: CacheName, found: Sequence[Answer]) -> Row:
    outcomes = Counter(each.answer.outcome for each in found)
    counts = ", ".join(f"{outcomes[outcome]:,} {outcome}" for outcome in LOOKS if outcomes[outcome])
    reason = next((f": {each.why}" for each in found if each.of_run and each.why), "")
    return Row(("cache", cache), words((f"{NAMES[cache]:<18} ", "strong"), counts, (reason, "dim")))


def _answers(run: Run, mine: Sequence[Answer]) -> Iterator[Row]:
    """Each answer about the graph; those about kernels by cache, outcome and reason, as there are hundreds."""
    alike: dict[tuple[CacheName, CacheOutcome, str], list[Answer]] = {}
    for number, each in enumerate(mine):
        if each.answer.what and each.answer.outcome in ("hit", "miss"):
            alike.setdefault((each.answer.cache, each.answer.outcome, each.why), []).append(each)
        else:
            yield _answer(each, number)
    for (cache, outcome, reason), ones in alike.items():
        sign, tone = LOOKS[outcome]
        text = f"  {counted(len(ones), 'kernel')}" + (f": {reason}" if reason else "")
        yield Row(
            ("kernels of", ones[0].frame, ones[0].answer.part, cache, outcome, reason),
            words((f"{sign} {outcome:<6} ", tone), (NAMES[cache], "strong"), (text, "dim")),
            rows=lambda ones=ones: _kernels(run, ones),  # type: ignore[misc]  # bound now
            open="text",
            refs=Refs(frame=ones[0].frame),
            opens="fold",
        )


def _kernels(run: Run, ones: Sequence[Answer]) -> list[Row]:
    known = {(kernel.frame, kernel.name): kernel_refs(kernel) for kernel in run.kernels}
    return [
        Row(
            (
                "kernel of",
                each.answer.cache,
                each.answer.outcome,
                each.why,
                each.frame,
                each.answer.part,
                each.answer.what,
            ),
            words(each.answer.what),
            refs=Refs(frame=each.frame, kernel=(refs := known.get((each.frame, each.answer.what)))),
            opens="kernel" if refs else "",
        )
        for each in ones
    ]


def _answer(each: Answer, number: int) -> Row:
    sign, tone = LOOKS[each.answer.outcome]
    name = NAMES[each.answer.cache] + (f", {each.answer.what}" if each.answer.what else "")
    key = ("answer", each.frame, each.answer.part, number)
    below = [Row((key, "why"), words(each.why))] if each.why else []
    to_do = ways_out(each.answer)
    below += [Row((key, "do"), words((f"{MARKS['arrow']} {MAY}{to_do}", "accent")))] if to_do else []
    shown = words((f"{sign} {each.answer.outcome:<6} ", tone), (name, "strong"))
    copied = f"{name} {each.answer.outcome}: {each.why}"
    return Row(key, shown, rows=below, open="all", refs=Refs(frame=each.frame), copied=copied)


def why(answer: CacheAnswer) -> str:
    """The reason of an answer, in a sentence; "" of what needs none."""
    if answer.outcome == "hit":
        saved = f"saved {duration(1000 * answer.saved)}, as measured by torch" if answer.saved else ""
        return answer.reason or saved
    if answer.outcome != "miss" or answer.cache not in ("fx_graph", "aot_autograd"):
        return answer.reason
    if answer.reason:
        return answer.reason
    if answer.differs:
        parts = "; ".join(difference(differs) for differs in answer.differs)
        return f"{parts} (against the nearest key, of {answer.nearest})"
    if answer.nearest:
        return f"this key was compiled before ({answer.nearest}), and the entry is no longer in the cache"
    return "no similar key was seen before by idbg"


def difference(differs: Differs) -> str:
    """What differs: "the shape of argument 1 is [5, 8], was [4, 8]"."""
    if (differs.now or differs.before) and max(len(differs.now), len(differs.before)) <= _LEAST:
        return f"{differs.part} is {differs.now or 'not there'}, was {differs.before or 'not there'}"
    if differs.part.endswith((" came", " arguments", " parts")) or " went: " in differs.part:
        return differs.part
    return f"{differs.part} differs"


def as_json(run: Run) -> object:
    """Each answer, whole, with its sentence."""
    return [
        answer.facts(frame=frame, why=why(answer), **({"to_do": to_do} if (to_do := ways_out(answer)) else {}))
        for frame, answer in run.decided.with_frames(CacheAnswer)
    ]
