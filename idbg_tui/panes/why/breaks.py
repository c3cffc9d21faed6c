"""Where do graphs break, the worst first, and what can be done about it?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, elapsed
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import GraphBreak
from idbg.schema.graphs import Frame, GraphId
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.panes.why import stacks
from idbg_tui.panes.why.frame_graphs import FrameGraphs
from idbg_tui.panes.why.rows import Look, Row, said, sign, widest
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "no graph break: each function that was compiled is one graph"
_WAYS = {
    "call": "Python makes this call; what follows is a graph of its own",
    "branch": "Python chooses; each arm is a graph of its own",
    "rest": "what follows in this function runs in eager",
    "frame": "all of this function runs in eager",
    "limit": "it was compiled too often: other inputs run in eager",
}


@dataclass(frozen=True)
class Action:
    """All breaks at one line for one reason: the first of them, and the frames that broke so."""

    broke: GraphBreak
    frames: tuple[str, ...]

    @property
    def key(self) -> tuple[str, int, str]:
        return self.broke.file, self.broke.line, self.broke.reason


class _Known:
    """What every row needs, looked up once."""

    def __init__(self, run: Run, look: Look, table: Table) -> None:
        self.run, self.look, self.table = run, look, table
        self.graphs = FrameGraphs(run)
        self._called: dict[str, list[Frame]] = {}
        for frame in run.frames.values():
            self._called.setdefault(frame.parent, []).append(frame)

    def sides(self, one: Action) -> tuple[GraphId | None, GraphId | None]:
        """The graphs that end before the break and begin after it, of the first frame that broke so."""
        broke = one.broke
        called = self._called.get(broke.frame, ()) if broke.frame else ()
        after = next((each.id for each in called if _goes_on(each.function, broke.line)), "")
        return self.graphs.graph(broke.frame), self.graphs.graph(after)

    def lost(self, one: Action) -> float | None:
        """Seconds that went into attempts which these breaks ended."""
        results = (self.run.decided.results.get(frame) for frame in dict.fromkeys(one.frames))
        known = [result.lost for result in results if result is not None and result.lost is not None]
        return sum(known) if known else None


def count(run: Run) -> int:
    """Lines at which graphs break, each once for a reason."""
    return len(actions(run))


def actions(run: Run) -> list[Action]:
    """What can be mended, the worst first: what leaves most in eager, then what breaks most often."""
    again: dict[int, list[str]] = {}
    for other in run.decided.breaks_again:
        again.setdefault(other.first, []).append(other.frame)
    found: dict[tuple[str, int, str], Action] = {}
    for place, broke in enumerate(run.breaks):
        one = Action(broke, (broke.frame, *again.get(place, ())))
        before = found.get(one.key)
        found[one.key] = one if before is None else Action(before.broke, (*before.frames, *one.frames))
    worst = ("limit", "frame", "rest")
    return sorted(found.values(), key=lambda one: (one.broke.way not in worst, -len(one.frames)))


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A line of the user's a row; unfolded it says what torch says of it, and how the program came there."""
    found = actions(run)
    if not found:
        return []
    places = [_place(one, look) for one in found]
    table = Table(
        (Column("times", 5, 3, right=True), Column("cost", 8, 2, right=True), Column("line", widest(places, 32), 4)),
        "why a graph ends, the worst first",
    )
    known = _Known(run, look, table)
    return [table.heads(), *(row for one in found for row in _action(one, known))]


def _action(one: Action, known: _Known) -> Iterator[Row]:
    broke, look = one.broke, known.look
    fold = ("break", *one.key)
    is_open = look.is_open(fold)
    words = [
        (f"{sign(is_open=is_open)} ", ""),
        (f"{SEVERITY_SIGNS['fallback']} ", "fallback"),
        (broke.kind or broke.reason, "strong"),
        (f"  {_code(broke)}", "dim"),
    ]
    before, after = known.sides(one)
    lost = known.lost(one)
    cells = [
        (f"{len(one.frames):,}", ""),
        (elapsed(lost) if lost is not None else NOTHING, ""),
        (_place(one, look), "accent"),
    ]
    yield Row(
        fold,
        known.table.row(words, cells),
        "edit" if broke.file else "fold",
        fold,
        is_open,
        frame=broke.frame,
        file=broke.file,
        line=broke.line,
        before=before,
        after=after,
        sought=Sought("break", place=f"{broke.file}:{broke.line}" if broke.file else ""),
    )
    if is_open:
        yield from _details(one, known, (fold,))


def _details(one: Action, known: _Known, inside: tuple[object, ...]) -> Iterator[Row]:
    """What torch says of it, in the order in which it helps."""
    broke, look = one.broke, known.look
    told = [
        ("", "why", broke.explanation or broke.reason, ""),
        *(("hint", f"hint {place}", hint, "strong") for place, hint in enumerate(broke.hints)),
        ("then", "way", _WAYS.get(broke.way, ""), ""),
        ("what", "context", broke.context.partition("\n")[0], "dim"),
        ("more", "page", broke.page, "accent"),
    ]
    for label, name, text, style in told:
        if text:
            words = f"{label}: {text}" if label else text
            yield from said(words, look, key=(inside, name), depth=1, style=style, inside=inside)
    before, after = known.sides(one)
    for name, graph, key in (("before", before, ","), ("after", after, ".")):
        if graph is not None:
            where = f"{name}: graph {graph.frame}, {counted(known.graphs.calls(graph), 'op')}; {key} goes there"
            yield from said(where, look, key=(inside, name), depth=1, style="dim", inside=inside)
    if len(set(one.frames)) > 1:
        names = ", ".join(dict.fromkeys(one.frames))
        yield from said(f"in frames {names}", look, key=(inside, "frames"), depth=1, style="dim", inside=inside)
    yield from stacks.rows(broke.stack, look, (inside, "stack"), 1, inside)


def _goes_on(function: str, line: int) -> bool:
    """Whether it is torch's function for what follows a break at the line, or below."""
    at = function.rpartition("_at_")[2]
    return "resume_in" in function and (not at.isdigit() or int(at) >= line)


def _code(broke: GraphBreak) -> str:
    """The text of the line, where it is known."""
    at = (one.code for one in reversed(broke.stack) if (one.file, one.line) == (broke.file, broke.line))
    return next(at, "")


def _place(one: Action, look: Look) -> str:
    return file_names.place(one.broke.file, one.broke.line, look.files) if one.broke.file else "no line"
