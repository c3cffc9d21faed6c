"""Which frames did torch compile, how often, from where, and what became of each compile? What did it leave alone?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, elapsed
from idbg.format.failures import headline, place_of
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.decisions.dynamo import FrameEnd, Skip
from idbg.schema.events import FrameFailed, Recompiled
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run
from idbg_tui.panes.why.frame_graphs import FrameGraphs, function_name
from idbg_tui.panes.why.recompiles import said_failed
from idbg_tui.panes.why.rows import INDENT, Enter, Look, Row, Rows, said, sign, widest
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "torch.compile was asked for nothing in this program: 7 Log has what it printed, 1 Graph is empty too"
_MANY = 60  # functions from which their compiles are folded at first
_LOOKS: dict[FrameEnd | None, tuple[str, str]] = {
    "compiled": (VERDICT_SIGNS["clean"], "clean"),
    "eager": (SEVERITY_SIGNS["fallback"], "fallback"),
    "skipped": (SEVERITY_SIGNS["slow"], "dim"),
    "failed": (VERDICT_SIGNS["failed"], "reject"),
    None: (VERDICT_SIGNS["waiting"], "dim"),
}
_WORST: tuple[FrameEnd | None, ...] = ("failed", "eager", "skipped", None, "compiled")


@dataclass
class _Code:
    """A function, each of its compiles, and those that its compiled code called."""

    number: str
    compiles: list[Frame] = field(default_factory=list)
    called: list["_Code"] = field(default_factory=list)

    @property
    def first(self) -> Frame:
        return self.compiles[0]


@dataclass(frozen=True)
class _Known:
    """What every row needs, looked up once."""

    run: Run
    look: Look
    table: Table
    many: bool
    graphs: FrameGraphs
    breaks: dict[str, int]
    recompiled: dict[str, Recompiled]
    failed: dict[str, FrameFailed]


def count(run: Run) -> int:
    """Compiles of frames."""
    return len(run.frames)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A function a row, those that its compiled code called under it; of several compiles each. Then failures that no
    frame has, and what was left alone.
    """
    codes = _codes(run)
    known = _known(run, look, sum(len(code.compiles) for code in _all(codes)) > _MANY)
    found = Rows()
    for code in codes:
        _add(found, code, known, 0, ())
    _add_failures(found, known)
    _add_skips(found, known)
    if not len(found):
        return []
    whole = Rows()
    whole.add(known.table.heads())
    whole.extend(found)
    return whole


def _codes(run: Run) -> list[_Code]:
    """The functions that no compiled code called, in the order in which they were compiled."""
    codes: dict[str, _Code] = {}
    top: list[_Code] = []
    for frame in run.frames.values():
        number = _number(frame.id)
        if number in codes:
            codes[number].compiles.append(frame)
            continue
        code = codes[number] = _Code(number, [frame])
        above = codes.get(_number(frame.parent)) if frame.parent else None
        (above.called if above is not None else top).append(code)
    return top


def _all(codes: Sequence[_Code]) -> Iterator[_Code]:
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        yield code
        waiting += code.called


def _number(frame: str) -> str:
    """The frame's number in a compile's id, with which reset of Dynamo it was: "0" of "0/1", "0#2" of "0/1#2"."""
    number, _, rest = frame.partition("/")
    _, again, reset = rest.partition("#")
    return number + again + reset


def _known(run: Run, look: Look, many: bool) -> _Known:
    breaks: dict[str, int] = {}
    for frame in [*(broke.frame for broke in run.breaks), *(again.frame for again in run.decided.breaks_again)]:
        breaks[frame] = breaks.get(frame, 0) + 1
    places = [file_names.place(frame.file, frame.line, look.files) for frame in run.frames.values() if frame.file]
    columns = (
        Column("graphs", 6, 1, right=True),
        Column("breaks", 6, 3, right=True),
        Column("guards", 6, 0, right=True),
        Column("time", 8, 4, right=True),
        Column("line", widest(places, 28), 2),
    )
    return _Known(
        run,
        look,
        Table(columns, "function, and each of its compiles"),
        many,
        FrameGraphs(run),
        breaks,
        {one.frame: one for one in run.recompiles},
        {one.frame: one for one in run.frame_failures},
    )


def _add(found: Rows, code: _Code, known: _Known, depth: int, inside: tuple[object, ...]) -> None:
    fold = ("code", code.number)
    is_open = known.look.is_open(fold, at_first=len(code.compiles) > 1 and not known.many)
    found.add_later(fold, partial(_code_row, code, known, depth, inside, is_open))
    if is_open:
        for frame in code.compiles:
            _add_compile(found, frame, known, depth + 1, (*inside, fold))
    for called in code.called:
        _add(found, called, known, depth + 1, inside)


def _code_row(code: _Code, known: _Known, depth: int, inside: tuple[object, ...], is_open: bool) -> Row:
    run, first = known.run, code.first
    ends = [_end(run, frame.id) for frame in code.compiles]
    mark, style = _LOOKS[min(ends, key=_WORST.index)]
    times = [run.decided.results[frame.id].seconds for frame in code.compiles if frame.id in run.decided.results]
    told = [seconds for seconds in times if seconds is not None]
    words = [
        (f"{' ' * INDENT * depth}{sign(is_open=is_open)} ", ""),
        (f"{mark} ", style),
        (function_name(first.function), "strong"),
        (f"  {_ended(ends)}", "dim"),
    ]
    cells = _cells(known, [frame.id for frame in code.compiles], sum(told) if told else None, first)
    drawn = known.table.row(words, cells)
    nodes = known.graphs.nodes(first.id)
    enter: Enter = "node" if nodes and len(code.compiles) == 1 else "fold"
    key = ("code", code.number)
    return Row(key, drawn, enter, key, is_open, inside, first.id, first.file, first.line, nodes)


def _add_compile(found: Rows, frame: Frame, known: _Known, depth: int, inside: tuple[object, ...]) -> None:
    found.add_later(("compile", frame.id), partial(_compile_row, frame, known, depth, inside))
    look = known.look
    for key, text, style in _whys(frame, known):
        for row in said(text, look, key=(key, frame.id), depth=depth + 1, style=style, inside=inside):
            found.add(row)


def _compile_row(frame: Frame, known: _Known, depth: int, inside: tuple[object, ...]) -> Row:
    result = known.run.decided.results.get(frame.id)
    end = result.end if result is not None else None
    mark, style = _LOOKS[end]
    facts: list[str] = [end or "not ended"]
    if result is not None and result.ops is not None:
        facts.append(counted(result.ops, "op"))
    answers = [answer for answer in known.run.decided.caches.get(frame.id, ()) if answer.outcome in ("hit", "miss")]
    hits = sum(answer.outcome == "hit" for answer in answers)
    if answers:
        facts.append(f"{hits} of {counted(len(answers), 'cache look-up')} hit")
    if result is not None and result.attempts > 1:
        facts.append(f"traced {result.attempts} times")
    words = [
        (" " * (INDENT * depth), ""),
        (f"{mark} ", style),
        (frame.id, "accent"),
        (f"  {', '.join(facts)}", ""),
    ]
    cells = _cells(known, [frame.id], result.seconds if result is not None else None, None)
    nodes = known.graphs.nodes(frame.id)
    key = ("compile", frame.id)
    drawn = known.table.row(words, cells)
    return Row(key, drawn, "node" if nodes else "", None, False, inside, frame.id, frame.file, frame.line, nodes)


def _whys(frame: Frame, known: _Known) -> Iterator[tuple[str, str, str]]:
    """Why it was compiled again, traced again, or not compiled: a key, the sentence and its look."""
    if (again := known.recompiled.get(frame.id)) is not None:
        words = said_failed(again.failed[0]) if again.failed else again.reason.partition("\n")[0]
        yield "again", f"compiled again: {words}", "dim"
    result = known.run.decided.results.get(frame.id)
    for place, restart in enumerate(result.restarts if result is not None else ()):
        yield f"restart {place}", f"traced again: {restart}", "dim"
    if result is not None and result.why:
        yield "why", result.why, "dim"
    if (failed := known.failed.get(frame.id)) is not None:
        yield "failed", str(headline(failed.failure)), "reject"


def _cells(known: _Known, frames: Sequence[str], seconds: float | None, place: Frame | None) -> list[tuple[str, str]]:
    graphs = sum(map(known.graphs.count, frames))
    broke = sum(known.breaks.get(frame, 0) for frame in frames)
    each = [known.run.decided.guards.get(frame) for frame in frames]
    guards = [len(one.guards) for one in each if one is not None]
    where = file_names.place(place.file, place.line, known.look.files) if place is not None and place.file else ""
    return [
        (f"{graphs:,}", ""),
        (f"{broke:,}" if broke else NOTHING, "fallback" if broke else "dim"),
        (f"{sum(guards):,}" if guards else NOTHING, ""),
        (elapsed(seconds) if seconds is not None else NOTHING, ""),
        (where, "dim"),
    ]


def _ended(ends: Sequence[FrameEnd | None]) -> str:
    """ "x3: 2 compiled, 1 eager"; of one its end alone."""
    counts = {end: ends.count(end) for end in ends}
    if len(ends) == 1:
        return ends[0] or "not ended"
    words = ", ".join(f"{number} {end or 'not ended'}" for end, number in counts.items())
    return f"{MARKS['times']}{len(ends)}: {words}"


def _end(run: Run, frame: str) -> FrameEnd | None:
    result = run.decided.results.get(frame)
    return result.end if result is not None else None


def _add_failures(found: Rows, known: _Known) -> None:
    """What failed before it had a frame; else the run's own failure where nothing else tells of it."""
    loose = [one.failure for one in known.run.frame_failures if one.frame not in known.run.frames]
    own = known.run.failure
    if own is not None and own.kind != "cancelled" and not known.run.frame_failures:
        loose.append(own)
    for place, failure in enumerate(loose):
        file, line = place_of(failure)
        words = [(f"{VERDICT_SIGNS['failed']} ", "reject"), (str(headline(failure)), "")]
        drawn = known.table.row(words, [("", "")] * len(known.table.columns))
        found.add(Row(("failure", place), drawn, "edit", file=file, line=line, copied=failure.message))
        for row in said(failure.hint, known.look, key=("hint", place), depth=1, style="dim") if failure.hint else ():
            found.add(row)


def _add_skips(found: Rows, known: _Known) -> None:
    """The functions that Dynamo was asked for and left alone."""
    skips, dropped = known.run.decided.skips, known.run.decided.skips_dropped
    if not skips:
        return
    fold = ("skips",)
    is_open = known.look.is_open(fold)
    number = f"{counted(len(skips) + dropped, 'function')} left alone"
    told = f", {len(skips):,} of them told" if dropped else ""
    yours = sum(not _is_packages(skip) for skip in skips)
    whose = f", {yours:,} of them yours" if yours else ", all of packages"
    words = [(f"{sign(is_open=is_open)} ", ""), (f"{SEVERITY_SIGNS['slow']} ", "dim")]
    words += [(number, "strong"), (whose + told, "dim")]
    none = [("", "")] * len(known.table.columns)
    found.add(Row(fold, known.table.row(words, none), "fold", fold, is_open))
    for place, skip in enumerate(sorted(skips, key=_is_packages)) if is_open else ():
        found.add_later(("skip", place), partial(_skip_row, skip, place, known))


def _is_packages(skip: Skip) -> bool:
    return skip.file.startswith("<") or "site-packages" in skip.file or "dist-packages" in skip.file


def _skip_row(skip: Skip, place: int, known: _Known) -> Row:
    where = file_names.place(skip.file, skip.line, known.look.files)
    words = [(" " * INDENT + skip.function, ""), (f"  {skip.reason}", "dim")]
    cells = [*[("", "")] * (len(known.table.columns) - 1), (where, "dim")]
    return Row(
        ("skip", place), known.table.row(words, cells), "edit", None, False, (("skips",),), "", skip.file, skip.line
    )
