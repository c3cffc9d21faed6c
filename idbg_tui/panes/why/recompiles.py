"""Why was each function compiled again: which guard failed, what did it expect, what came, and what helps?"""

from collections.abc import Iterator, Sequence

from idbg.format import file_names
from idbg.format.amounts import NOTHING, counted, elapsed
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import FailedGuard
from idbg.schema.events import Recompiled
from idbg.schema.graphs import Frame
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg_tui.panes.why import stacks
from idbg_tui.panes.why.frame_graphs import function_name
from idbg_tui.panes.why.rows import INDENT, Look, Row, said, sign, widest
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "nothing was compiled twice: every call fitted what was compiled first"
_NEAR = 2  # compiles before torch gives up, from which it is a warning


def count(run: Run) -> int:
    """Compiles that were made as none before them fitted."""
    return len(run.recompiles)


def rows(run: Run, look: Look) -> Sequence[Row]:
    """A function a row, and under it its compiles in order, each with what did not fit."""
    if not run.recompiles:
        return []
    again = {one.frame: one for one in run.recompiles}
    codes: dict[tuple[str, str, int], list[Frame]] = {}
    for frame in run.frames.values():
        codes.setdefault((frame.id.partition("/")[0], frame.file, frame.line), []).append(frame)
    many = [frames for frames in codes.values() if any(frame.id in again for frame in frames)]
    places = [_place(failed, look) for one in run.recompiles for failed in one.failed]
    table = Table(
        (Column("time", 8, 2, right=True), Column("line", widest(places, 32), 3)),
        "function, compile by compile: what did not fit",
    )
    many.sort(key=len, reverse=True)
    if not many:
        return []  # it is told before the frame begins
    return [table.heads(), *(row for frames in many for row in _function(run, look, table, frames, again))]


def _function(
    run: Run, look: Look, table: Table, frames: Sequence[Frame], again: dict[str, Recompiled]
) -> Iterator[Row]:
    first = frames[0]
    fold = ("function", first.id)
    is_open = look.is_open(fold, at_first=True)
    told = [run.decided.results[frame.id].seconds for frame in frames if frame.id in run.decided.results]
    seconds = [one for one in told if one is not None]
    words = [
        (f"{sign(is_open=is_open)} ", ""),
        (function_name(first.function), "strong"),
        (f"  compiled {counted(len(frames), 'time')}", ""),
        *_limit(run, frames[-1]),
    ]
    cells = [
        (elapsed(sum(seconds)) if seconds else NOTHING, ""),
        (file_names.place(first.file, first.line, look.files) if first.file else "", "dim"),
    ]
    drawn = table.row(words, cells)
    yield Row(fold, drawn, "fold", fold, is_open, frame=first.id, file=first.file, line=first.line)
    for place, frame in enumerate(frames) if is_open else ():
        yield from _compile(run, look, table, frame, place, again.get(frame.id), (fold,))


def _limit(run: Run, frame: Frame) -> list[tuple[str, str]]:
    """How near it is to the number of compiles at which torch gives up."""
    result = run.decided.results.get(frame.id)
    if result is None or result.limit is None or result.alike is None:
        return []
    words = f"  {result.alike} of {result.limit}, then it stays eager"
    left = result.limit - result.alike
    return [(f"  {SEVERITY_SIGNS['fallback']}{words[1:]}", "fallback") if left <= _NEAR else (words, "dim")]


def _compile(
    run: Run,
    look: Look,
    table: Table,
    frame: Frame,
    place: int,
    again: Recompiled | None,
    inside: tuple[object, ...],
) -> Iterator[Row]:
    fold = ("compile", frame.id)
    failed = again.failed if again is not None else ()
    is_open = look.is_open(fold)
    result = run.decided.results.get(frame.id)
    if again is None:
        words = [(f"{' ' * INDENT}  compile {place}  ", ""), (frame.id, "accent"), ("  the first", "dim")]
    else:
        said_of = said_failed(failed[0]) if failed else again.reason
        words = [(f"{' ' * INDENT}{sign(is_open=is_open)} compile {place}  ", ""), (frame.id, "accent")]
        words += [(f"  {SEVERITY_SIGNS['fallback']} ", "fallback"), (said_of, "")]
    seconds = result.seconds if result is not None else None
    cells = [
        (elapsed(seconds) if seconds is not None else NOTHING, ""),
        (_place(failed[0], look) if failed else "", "accent"),
    ]
    at = (failed[0].file, failed[0].line) if failed and failed[0].file else (frame.file, frame.line)
    own = fold if again is not None else None
    yield Row(
        fold,
        table.row(words, cells),
        "edit",
        own,
        is_open,
        inside,
        frame=frame.id,
        file=at[0],
        line=at[1],
        sought=Sought("recompile", place=f"{frame.file}:{frame.line}") if own is not None and frame.file else None,
    )
    if again is not None and is_open:
        yield from _details(look, again, (*inside, fold))


def _details(look: Look, again: Recompiled, inside: tuple[object, ...]) -> Iterator[Row]:
    """Every version that did not fit, with the guard and the lines that caused it."""
    if not again.failed:
        yield from said(again.reason, look, key=(inside, "reason"), depth=2, inside=inside)
    for place, failed in enumerate(again.failed):
        against = f"{failed.against} {MARKS['arrow']} " if failed.against else ""
        key = (inside, place)
        yield from said(against + said_failed(failed), look, key=(key, "said"), depth=2, inside=inside)
        if failed.code:
            yield from said(f"the guard: {failed.code}", look, key=(key, "code"), depth=3, style="dim", inside=inside)
        yield from stacks.rows(failed.stack, look, (key, "stack"), 3, inside)


def said_failed(failed: FailedGuard) -> str:
    """ "x.size(0): expected 4, was 5"."""
    if not (failed.expected or failed.actual):
        return failed.text.partition("\n")[0]
    was = f", was {failed.actual}" if failed.actual else ""
    what = f" {failed.what}" if failed.what else ""
    return f"{failed.source or failed.code}{what}: expected {failed.expected}{was}"


def _place(failed: FailedGuard, look: Look) -> str:
    return file_names.place(failed.file, failed.line, look.files) if failed.file else ""
