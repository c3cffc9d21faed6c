"""What was found in which cache, and where one had nothing: why, and what is new in the key?"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import to_builtins

from idbg.analysis.decisions.caches import ways_out
from idbg.analysis.decisions.frames import spoken
from idbg.format.amounts import counted, duration
from idbg.format.file_names import near_place
from idbg.schema.decisions.caches import CacheAnswer, CacheName, Differs
from idbg.schema.decisions.decision import Decision
from idbg.schema.graphs import Part
from idbg.schema.runs import Run

NAMES: dict[CacheName, str] = {
    "fx_graph": "FX graph cache",
    "aot_autograd": "AOTAutograd cache",
    "autotune": "autotune cache",
    "triton": "Triton cache",
    "kernel": "C++ kernels",
}
OUTCOMES = ("hit", "miss", "bypass", "off")
NOTHING = "no cache was asked: nothing was lowered by Inductor"
_LEAST = 60  # characters of a value beside which it still reads as a sentence


class Row(NamedTuple):
    """One answer: which cache, of which frame and part, its outcome, of what, and why in a sentence."""

    frame: str
    part: Part
    cache: CacheName
    outcome: str
    what: str
    why: str
    to_do: str
    answer: CacheAnswer


def rows(run: Run) -> list[Row]:
    """Every answer of the run, in the order in which they came."""
    return [
        Row(frame, answer.part, answer.cache, answer.outcome, answer.what, why(answer), to_do(answer), answer)
        for frame, answers in run.decided.caches.items()
        for answer in answers
    ]


def text(run: Run) -> Iterable[str]:
    """How often each cache had it; then each graph's answer and its kernels'."""
    every = rows(run)
    if not every:
        yield NOTHING
        return
    for cache, name in NAMES.items():
        outcomes = Counter(row.outcome for row in every if row.cache == cache)
        if outcomes:
            counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES if outcomes[outcome])
            reason = next((row.why for row in every if row.cache == cache and _of_all(row)), "")
            yield f"{name:<18} {counts}{f': {reason}' if reason else ''}"
    single = [row for row in every if not _of_all(row)]
    for frame, part in dict.fromkeys((row.frame, row.part) for row in single):
        yield place_of(run, frame, part)
        mine = [row for row in single if (row.frame, row.part) == (frame, part)]
        for row in mine:
            if row.outcome not in ("hit", "miss") or not row.what:
                yield from _lines(row)
        yield from _of_kernels([row for row in mine if row.what and row.outcome in ("hit", "miss")])


def _of_all(row: Row) -> bool:
    """Whether it is said of the whole run, for the same reason: it need not be repeated for each frame."""
    return row.outcome == "off" and not row.part and not row.what


def _lines(row: Row) -> Iterator[str]:
    reason = f": {row.why}" if row.why else ""
    yield f"  {NAMES[row.cache]} {row.outcome}{f' ({row.what})' if row.what else ''}{reason}"
    if row.to_do:
        yield f"    {row.to_do}"


def _of_kernels(found: list[Row]) -> Iterator[str]:
    """Those of one cache and outcome on one line: a model has hundreds."""
    alike: dict[tuple[CacheName, str, str], list[str]] = {}
    for row in found:
        alike.setdefault((row.cache, row.outcome, row.why), []).append(row.what)
    for (cache, outcome, reason), names in alike.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield f"  {NAMES[cache]} {outcome}, {counted(len(names), 'kernel')}: {shown}" + (
            f" ({reason})" if reason else ""
        )


def place_of(run: Run, frame: str, part: Part) -> str:
    """Which compile: "0/0 inference   f   model.py:12"."""
    known = run.frames.get(frame)
    named = f"   {spoken(known)}   {near_place(known.file, known.line)}" if known else ""
    return f"{frame} {part}".rstrip() + named.rstrip()


def why(answer: CacheAnswer) -> str:
    """Why the cache answered so, in a sentence; "" of what needs none."""
    if answer.outcome == "hit":
        saved = f"saved {duration(1000 * answer.saved)}, as torch measured when it was compiled" if answer.saved else ""
        return answer.reason or saved
    if answer.outcome != "miss" or answer.cache not in ("fx_graph", "aot_autograd"):
        return answer.reason
    if answer.reason:
        return answer.reason
    if answer.differs:
        parts = "; ".join(said(differs) for differs in answer.differs)
        return f"{parts} (against the nearest key, of {answer.nearest})"
    if answer.nearest:
        return f"this key was compiled before ({answer.nearest}), and what came of it is no more in the cache"
    return "nothing like it was compiled before, as far as idbg saw"


def said(differs: Differs) -> str:
    """What differs: "the shape of argument 1 is [5, 8], was [4, 8]"."""
    if (differs.now or differs.before) and max(len(differs.now), len(differs.before)) <= _LEAST:
        return f"{differs.part} is {differs.now or 'not there'}, was {differs.before or 'not there'}"
    if differs.part.endswith((" came", " arguments", " parts")) or " went: " in differs.part:
        return differs.part
    return f"{differs.part} differs"


def to_do(answer: CacheAnswer) -> str:
    """What makes the cache answer next time, where something does."""
    return ways_out(answer)


def as_json(run: Run) -> object:
    """Each answer, whole, with its sentence."""
    return [
        {"frame": row.frame, **to_builtins(row.answer), "why": row.why, **({"to_do": row.to_do} if row.to_do else {})}
        for row in rows(run)
    ]


def about(run: Run) -> Iterable[Decision]:
    """Each answer, and the kernels that it is about: a graph's are all of its own."""
    of_graph: dict[tuple[str, Part], list[tuple[str, str]]] = {}
    for kernel in run.kernels:
        of_graph.setdefault((kernel.frame, kernel.part), []).append((kernel.frame, kernel.name))
    for row in rows(run):
        kernels = [(row.frame, row.what)] if row.what else of_graph.get((row.frame, row.part), [])
        yield Decision(
            kind="cache",
            words=f"{NAMES[row.cache]} {row.outcome}" + (f", {row.what}" if row.what else ""),
            why=". ".join(each for each in (row.why, row.to_do) if each),
            frame=row.frame,
            kernels=tuple(kernels),
        )
