"""Where do graphs break, why, what does it cost, and what can be done about it? The worst first."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import to_builtins

from idbg.analysis.decisions.break_words import WAYS, suggestions
from idbg.analysis.decisions.breaks import BreakPlace, Sides, places
from idbg.analysis.decisions.stacks import of_program
from idbg.format.amounts import and_unsized, counted, duration
from idbg.format.file_names import near_place
from idbg.reports.decisions.recompiles import of_suggestion
from idbg.reports.decisions.stacks import stack_lines
from idbg.schema.decisions.decision import Decision
from idbg.schema.runs import Run

PLACES = 50  # in text
HINTS = 2  # of torch's, in text


def text(run: Run) -> Iterable[str]:
    """Each line that breaks graphs: how often, why, what it costs, and what to do."""
    found = places(run)
    yield headline(found)
    failed = sum(result.end == "failed" for result in run.decided.results.values())
    if failed:
        yield f"{counted(failed, 'frame')} failed: --type frames tells why (fullgraph=True makes an error of a break)"
    for place in found[:PLACES]:
        yield ""
        yield from lines(place)
    if len(found) > PLACES:
        yield f"… and {counted(len(found) - PLACES, 'place')} more (--json has all of them)"


def headline(found: list[BreakPlace]) -> str:
    """How many breaks at how many places."""
    if not found:
        return "no graph breaks"
    times = sum(place.count for place in found)
    return f"{counted(times, 'graph break')} at {counted(len(found), 'place')}, what costs most first"


def lines(place: BreakPlace) -> Iterator[str]:
    """All that is said of a place, the most important first."""
    first = place.first
    often = f" ×{place.count}" if place.count > 1 else ""
    yield f"{near_place(place.file, place.line) or 'an unknown line'}{often}   {place.words}"
    if first.file and (first.file, first.line) != (place.file, place.line):
        yield f"  torch met it at {near_place(first.file, first.line)}"
    yield from (f"  {line}" for line in goes_on(place))
    yield from (f"  {line}" for line in cost(place))
    for suggestion in suggestions(first):
        yield from of_suggestion(suggestion)
    for hint in first.hints[:HINTS]:
        yield f"  hint: {hint.partition(chr(10))[0]}"
    if first.page:
        yield f"  torch's page of it: {first.page}"
    yield from (f"    {line}" for line in stack_lines(first.stack))


def goes_on(place: BreakPlace) -> Iterator[str]:
    """How the function goes on, each way in a line, with how often where there are several."""
    ways = Counter(way for way in place.ways if way)
    for way, count in ways.most_common():
        yield WAYS[way] + (f" (in {count} of {place.count})" if len(ways) > 1 else "")


def cost(place: BreakPlace) -> Iterator[str]:
    """What it costs: compiles that are there for it, memory that is crossed, kernels on both sides."""
    made = sum(len(side.after) + len(side.called) for side in place.sides)
    if place.seconds is not None and made:
        yield f"{duration(1000 * place.seconds)} of compiling, for the {counted(made, 'frame')} that it makes"
    elif place.seconds is not None:
        yield f"{duration(1000 * place.seconds)} of tracing in vain"
    if (side := place.worst) is not None:
        yield from _split(side)


def _split(side: Sides) -> Iterator[str]:
    called = f", called between {', '.join(side.called)}" if side.called else ""
    after = f", after it {', '.join(side.after)}" if side.after else ""
    yield f"before it frame {side.before}{called}{after}"
    crossing = f"{counted(side.tensors, 'tensor')} ({and_unsized(side.size, side.unsized)})" if side.tensors else ""
    kernels = f"{counted(side.kernels_before, 'kernel')} before and {side.kernels_after} after it"
    if crossing:
        yield f"{crossing} through memory in each call" + (f", {kernels}" if side.kernels_before else "")


def as_json(run: Run) -> object:
    """Each line that breaks graphs, with all that is known of it."""
    return [
        {
            "file": place.file,
            "line": place.line,
            "count": place.count,
            "words": place.words,
            "ways": place.ways,
            "reason": place.first.reason,
            "kind": place.first.kind,
            "explanation": place.first.explanation,
            "hints": place.first.hints,
            "page": place.first.page,
            "seconds": place.seconds,
            "frames": place.frames,
            "sides": [vars(side) for side in place.sides],
            "suggestions": [
                {"words": each.words, "code": each.code, "settings": each.settings} for each in suggestions(place.first)
            ],
            "stack": to_builtins(of_program(place.first.stack)),
        }
        for place in places(run)
    ]


def about(run: Run) -> Iterable[Decision]:
    """Each break, at the user's line and at the line that torch names."""
    for place in places(run):
        often = f" ({place.count} times)" if place.count > 1 else ""
        for file, line in dict.fromkeys(((place.file, place.line), (place.first.file, place.first.line))):
            words = f"the graph breaks here{often}: {place.words}"
            yield Decision(
                kind="break", words=words, why=place.first.reason, frame=place.first.frame, file=file, line=line
            )
