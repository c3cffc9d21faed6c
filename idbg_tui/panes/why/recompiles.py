"""Why was each function compiled again: which guard failed, what did it expect, what came, and what helps?"""

from collections.abc import Iterator, Sequence

from idbg.analysis.decisions import recompile_advice
from idbg.analysis.decisions.recompiles import CompileRow, Timeline, place_of, timelines
from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, elapsed
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.reports.decisions.recompiles import advice as advice_of
from idbg.reports.decisions.recompiles import made, of_guard
from idbg.schema.events import Recompiled
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.panes.why import advice, stacks
from idbg_tui.panes.why.rows import INDENT, Look, Row, said, sign, widest
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "nothing was compiled twice: every call fitted what was compiled first"


def count(run: Run) -> int:
    """Compiles that were made as none before them fitted."""
    return len(run.recompiles)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A function a row; under it its compiles in order, each with what did not fit, and what can be done."""
    found = timelines(run)
    if not found:
        return []
    places = [_place(run, row, look) for timeline in found for row in timeline.compiles]
    columns = (Column("time", 8, 2, right=True), Column("line", widest(places, 32), 3))
    table = Table(columns, "function, compile by compile: what did not fit")
    return [table.heads(), *(row for timeline in found for row in _function(run, look, table, timeline))]


def _function(run: Run, look: Look, table: Table, timeline: Timeline) -> Iterator[Row]:
    fold = ("function", timeline.code, timeline.function)
    is_open = look.is_open(fold, at_first=True)
    seconds = [row.result.seconds for row in timeline.compiles if row.result and row.result.seconds is not None]
    words = [
        (f"{sign(is_open=is_open)} ", ""),
        (timeline.function, "strong"),
        (f"  {counted(len(made(timeline)), 'compile')}", ""),
    ]
    if timeline.limit is not None:
        words.append((f"  {SEVERITY_SIGNS['fallback']} {timeline.limit.words}", "fallback"))
    place = file_names.place(timeline.file, timeline.line, look.files) if timeline.file else ""
    cells = [(elapsed(sum(seconds)) if seconds else NOTHING, ""), (place, "dim")]
    drawn = table.row(words, cells)
    helps = advice_of(run, timeline)
    again = next((each for each in helps if each.can_be_tried), None)
    frame = timeline.compiles[0].frame
    at = {"file": timeline.file, "line": timeline.line}
    yield Row(fold, drawn, "fold", fold, is_open, frame=frame, again=again, **at)  # type: ignore[arg-type]
    if not is_open:
        return
    for row in timeline.compiles:
        yield from _compile(run, look, table, timeline, row, (fold,))
    yield from advice.rows(helps, look, fold, 1, (fold,))


def _compile(
    run: Run, look: Look, table: Table, timeline: Timeline, row: CompileRow, inside: tuple[object, ...]
) -> Iterator[Row]:
    fold = ("compile", row.frame)
    is_open = look.is_open(fold)
    start = " " * INDENT
    if not row.number:
        words = [(f"{start}  compile 0  ", ""), (row.frame, "accent"), ("  the first", "dim")]
    else:
        name = "not compiled" if row.refused else f"compile {row.number}"
        words = [(f"{start}{sign(is_open=is_open)} {name}  ", ""), (row.frame, "accent")]
        words += [(f"  {SEVERITY_SIGNS['fallback']} ", "fallback"), (_why(row), "")]
    seconds = row.result.seconds if row.result is not None else None
    cells = [(NOTHING if seconds is None else elapsed(seconds), ""), (_place(run, row, look), "accent")]
    file, line = place_of(run, row.failed[0]) if row.failed else ("", 0)
    own = fold if row.number else None
    helps = recompile_advice.advice_on(row.failed[0], timeline, run) if row.failed else []
    yield Row(
        fold,
        table.row(words, cells),
        "edit",
        own,
        is_open,
        inside,
        frame=row.frame,
        file=file or timeline.file,
        line=line or timeline.line,
        sought=Sought("recompile", place=f"{timeline.file}:{timeline.line}") if own and timeline.file else None,
        again=next((each for each in helps if each.can_be_tried), None),
    )
    if own is not None and is_open:
        yield from _details(look, row, (*inside, fold))


def _details(look: Look, row: CompileRow, inside: tuple[object, ...]) -> Iterator[Row]:
    """Every version that did not fit, with the guard and the lines that caused it."""
    if not row.failed:
        yield from said(row.reason, look, key=(inside, "reason"), depth=2, inside=inside)
    for place, failed in enumerate(row.failed):
        against = f"{failed.against} {MARKS['arrow']} " if failed.against else ""
        key = (inside, place)
        yield from said(against + of_guard(failed), look, key=(key, "said"), depth=2, inside=inside)
        if failed.expected or failed.actual:
            both = f"expected {failed.expected or 'something else'}, was {failed.actual or 'not told'}"
            yield from said(both, look, key=(key, "both"), depth=3, style="dim", inside=inside)
        if failed.code:
            code = f"the guard: {failed.code}"
            yield from said(code, look, key=(key, "code"), depth=3, style="dim", inside=inside)
        yield from stacks.rows(failed.stack, look, (key, "stack"), 3, inside)


def said_again(recompiled: Recompiled) -> str:
    """Why a frame was compiled again, in a line."""
    return of_guard(recompiled.failed[0]) if recompiled.failed else recompiled.reason.partition("\n")[0]


def _why(row: CompileRow) -> str:
    return of_guard(row.failed[0]) if row.failed else row.reason.partition("\n")[0]


def _place(run: Run, row: CompileRow, look: Look) -> str:
    file, line = place_of(run, row.failed[0]) if row.failed else ("", 0)
    return file_names.place(file, line, look.files) if file else ""
