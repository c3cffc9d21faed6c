"""Show where graphs break, why, what each break costs, and what to do about it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import to_builtins

from idbg.analysis.decisions.breaks import WAYS, BreakPlace, Sides, places, suggestions
from idbg.analysis.decisions.trials import of_place
from idbg.format.amounts import and_unsized, counted, seconds
from idbg.format.file_names import near_place
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import FrameResult, GraphBreak, Trial
from idbg.schema.graphs import GraphId
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views import advice, stacks
from idbg.views.frame_graphs import FrameGraphs
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Place, Refs, Row, Section, Table, Tone, words

TITLE = "Graph breaks"
_COLUMNS = (Column("times", "count", 3), Column("cost", "seconds", 2), Column("line", "place", 4))


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a line that breaks graphs, the most expensive first; below it what to do, why, and the stack."""
    found, failed = places(run), sum(result.end == "failed" for result in run.decided.last(FrameResult).values())
    body: list[Row | Table] = []
    if failed:
        text = f"{counted(failed, 'frame')} failed: frames has why (fullgraph=True makes a break an error)"
        body.append(Row("failed", words((text, "fallback"))))
    if not found:
        return Section(TITLE, "no graph breaks", 0, "unknown" if failed else "ok", tuple(body))
    graphs = FrameGraphs(run)
    body.insert(0, Table(_COLUMNS, [_break(one, graphs, run.trials) for one in found], "place"))
    summary = f"{counted(count(run), 'graph break')} at {counted(len(found), 'place')}, most expensive first"
    return Section(TITLE, summary, count(run), "warning", tuple(body))


def count(run: Run) -> int:
    """How often a graph broke: a line can break several."""
    return run.times_broken


def sentence(one: GraphBreak) -> str:
    """Where the graph breaks, and the first line of torch's reason."""
    reason = one.reason.strip().partition("\n")[0]
    return f"graph break at {near_place(one.file, one.line) or 'an unknown line'}: {reason}"


def _break(one: BreakPlace, graphs: FrameGraphs, trials: Sequence[Trial]) -> Row:
    first = one.first
    before, after = _sides(one, graphs)
    at = (line.code for line in reversed(first.stack) if (line.file, line.line) == (one.file, one.line))
    sign = f"{SEVERITY_SIGNS['fallback']} "
    return Row(
        key := ("break", first.file, first.line, first.reason),
        words((sign, "fallback"), (one.words, "strong"), (f"  {next(at, '')}".rstrip(), "dim")),
        (Cell(one.count), Cell(one.seconds), Cell(Place(one.file, one.line) if one.file else "unknown line")),
        rows=lambda: _details(one, key, trials),
        open="text",
        refs=Refs(file=one.file, line=one.line, frame=first.frame, before=before, after=after),
        opens="edit" if one.file else "fold",
        repro=Sought("break", place=f"{first.file}:{first.line}" if first.file else ""),
        suggestion=advice.first_that_can_be_tried(suggestions(first)),
    )


def _details(one: BreakPlace, key: object, trials: Sequence[Trial]) -> Iterator[Row]:
    """What to do, how the function goes on and what that costs, what torch reports, then the stack."""
    first = one.first
    yield from advice.rows(suggestions(first), key, trials, of_place(one))
    if first.file and (first.file, first.line) != (one.file, one.line):
        at = Place(first.file, first.line)
        yield Row(
            (key, "torch"), words("torch reports it at ", at), refs=Refs(file=at.file, line=at.line), opens="edit"
        )
    explanation = first.explanation or first.reason
    facts: list[tuple[str, Tone]] = [
        *((text, "") for text in goes_on(one)),
        *((text, "") for text in cost(one)),
        (explanation if explanation != one.words else "", "dim"),
        *((f"torch's hint: {hint}", "dim") for hint in first.hints),
        (f"context: {first.context.partition(chr(10))[0]}" if first.context else "", "dim"),
        (f"torch's page {one.page}: {first.page}" if first.page else "", "dim"),
    ]
    for number, (text, tone) in enumerate(facts):
        if text:
            yield Row((key, number), words((text, tone)))
    yield from stacks.rows(first.stack, (key, "stack"))


def _sides(one: BreakPlace, graphs: FrameGraphs) -> tuple[GraphId | None, GraphId | None]:
    """The graphs that end before the break and begin after it, where it costs most."""
    side = one.worst
    before = graphs.graph(side.before if side is not None else one.first.frame)
    after = graphs.graph(side.after[0]) if side is not None and side.after else None
    return before, after


def goes_on(place: BreakPlace) -> Iterator[str]:
    """How the function continues, each way once, with how often where there are several."""
    ways = Counter(way for way in place.ways if way)
    for way, times in ways.most_common():
        yield WAYS[way] + (f" (in {times} of {place.count})" if len(ways) > 1 else "")


def cost(place: BreakPlace) -> Iterator[str]:
    """What it costs: compiles that it causes, memory that crosses it, kernels on both sides."""
    frames = sum(len(side.after) + len(side.called) for side in place.sides)
    if place.seconds is not None and frames:
        yield f"{seconds(place.seconds)} of compiling, for the {counted(frames, 'frame')} that it causes"
    elif place.seconds is not None:
        yield f"{seconds(place.seconds)} of tracing that was discarded"
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
            **picked(place, "file line count words ways seconds frames"),
            **picked(place.first, "reason kind explanation hints page"),
            "sides": [vars(side) for side in place.sides],
            "suggestions": [advice.as_json(each, run.trials) for each in suggestions(place.first)],
            "stack": to_builtins(place.first.stack),
        }
        for place in places(run)
    ]
