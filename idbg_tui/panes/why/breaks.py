"""Where do graphs break, the worst first, and what can be done about it?"""

from collections.abc import Iterator, Sequence

from idbg.analysis.decisions.break_words import suggestions
from idbg.analysis.decisions.breaks import BreakPlace, places
from idbg.format import file_names
from idbg.format.amounts import NOTHING, duration
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.reports.decisions.breaks import cost, goes_on
from idbg.schema.graphs import GraphId
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.panes.why import advice, stacks
from idbg_tui.panes.why.frame_graphs import FrameGraphs
from idbg_tui.panes.why.rows import Look, Row, said, sign, widest
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "no graph break: each function that was compiled is one graph"


def count(run: Run) -> int:
    """How often a graph broke; a row of several says how often."""
    return run.times_broken


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A line of the user's a row; unfolded it says what torch says of it, and how the program came there."""
    found = places(run)
    if not found:
        return []
    wide = widest((_place(one, look) for one in found), 32)
    columns = (Column("times", 5, 3, right=True), Column("cost", 8, 2, right=True), Column("line", wide, 4))
    table, graphs = Table(columns, "why a graph ends, what costs most first"), FrameGraphs(run)
    return [table.heads(), *(row for one in found for row in _break(one, look, table, graphs))]


def _break(one: BreakPlace, look: Look, table: Table, graphs: FrameGraphs) -> Iterator[Row]:
    fold = ("break", one.first.file, one.first.line, one.first.reason)
    is_open = look.is_open(fold)
    words = [
        (f"{sign(is_open=is_open)} ", ""),
        (f"{SEVERITY_SIGNS['fallback']} ", "fallback"),
        (one.words, "strong"),
        (f"  {_code(one)}", "dim"),
    ]
    cells = [
        (f"{one.count:,}", ""),
        (NOTHING if one.seconds is None else duration(1000 * one.seconds), ""),
        (_place(one, look), "accent"),
    ]
    before, after = _sides(one, graphs)
    yield Row(
        fold,
        table.row(words, cells),
        "edit" if one.file else "fold",
        fold,
        is_open,
        frame=one.first.frame,
        file=one.file,
        line=one.line,
        before=before,
        after=after,
        sought=Sought("break", place=f"{one.first.file}:{one.first.line}" if one.first.file else ""),
        again=next((each for each in suggestions(one.first) if each.can_be_tried), None),
    )
    if is_open:
        yield from _details(one, look, (before, after), (fold,))


def _details(
    one: BreakPlace, look: Look, sides: tuple[GraphId | None, GraphId | None], inside: tuple[object, ...]
) -> Iterator[Row]:
    """What to do, then what torch says of it, then how the program came there."""
    first = one.first
    yield from advice.rows(suggestions(first), look, inside, 1, inside)
    named = zip(",.", ("before", "after"), sides, strict=True)
    keys = [f"{key} goes to the graph {name}" for key, name, graph in named if graph is not None]
    told = [
        *((f"way {place}", words, "") for place, words in enumerate(goes_on(one))),
        *((f"cost {place}", words, "") for place, words in enumerate(cost(one))),
        ("graphs", ", ".join(keys), "accent"),
        ("explanation", first.explanation or first.reason, "dim"),
        *((f"hint {place}", f"torch's hint: {hint}", "dim") for place, hint in enumerate(first.hints)),
        ("context", f"met: {first.context.partition(chr(10))[0]}" if first.context else "", "dim"),
        ("page", f"torch's page {one.page}: {first.page}" if first.page else "", "dim"),
    ]
    for name, text, style in told:
        if text:
            yield from said(text, look, key=(inside, name), depth=1, style=style, inside=inside)
    yield from stacks.rows(first.stack, look, (inside, "stack"), 1, inside)


def _sides(one: BreakPlace, graphs: FrameGraphs) -> tuple[GraphId | None, GraphId | None]:
    """The graphs that end before the break and begin after it, of where it costs most."""
    side = one.worst
    before = graphs.graph(side.before if side is not None else one.first.frame)
    after = graphs.graph(side.after[0]) if side is not None and side.after else None
    return before, after


def _code(one: BreakPlace) -> str:
    """The text of the line, where it is known."""
    at = (line.code for line in reversed(one.first.stack) if (line.file, line.line) == (one.file, one.line))
    return next(at, "")


def _place(one: BreakPlace, look: Look) -> str:
    return file_names.place(one.file, one.line, look.files) if one.file else "no line"
