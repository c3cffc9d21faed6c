"""Show which functions were compiled again, for which guard each time, and what to do about it."""

from collections.abc import Hashable, Iterator

from msgspec import to_builtins

from idbg.analysis.decisions.recompile_advice import advice_on, suggestions_for
from idbg.analysis.decisions.recompiles import CompileRow, Timeline, place_of, shown, timelines
from idbg.analysis.decisions.trials import of_timeline
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import FailedGuard
from idbg.schema.events import Recompiled
from idbg.schema.repros import Sought
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views import advice, stacks
from idbg.views.frame_graphs import call_words
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Place, Refs, Row, Section, Table, Words, words

TITLE = "Recompiles"
_COLUMNS = (Column("time", "seconds", 2), Column("line", "place", 3))


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a function, those with most compiles first; below it its compiles in order, then what to do."""
    found = timelines(run)
    again = [timeline for timeline in found if len(made(timeline)) > 1]
    recompiled = sum(len(made(timeline)) - 1 for timeline in again)
    refused = sum(any(row.refused for row in timeline.compiles) for timeline in found)
    if not found:
        is_empty = not run.graphs and not run.codes
        why_none = "nothing was compiled" if is_empty else "every call fitted what was compiled first"
        return Section(TITLE, f"no recompiles: {why_none}")
    over_limit = f", {counted(refused, 'function')} at the limit" if refused else ""
    return Section(
        TITLE,
        f"{counted(recompiled, 'recompile')} of {counted(len(again), 'function')}{over_limit}",
        count(run),
        "warning",
        (Table(_COLUMNS, [_function(run, timeline) for timeline in found], "function"),),
    )


def count(run: Run) -> int:
    """Compiles that were made because none before them fitted."""
    return len(run.recompiles)


def _function(run: Run, timeline: Timeline) -> Row:
    seconds = [row.result.seconds for row in timeline.compiles if row.result and row.result.seconds is not None]
    suggestions = suggestions_for(run, timeline)
    limit = f"  {SEVERITY_SIGNS['fallback']} {timeline.limit.words}" if timeline.limit else ""
    return Row(
        key := ("function", timeline.code, timeline.function),
        words((timeline.function, "strong"), f"  {counted(len(made(timeline)), 'compile')}", (limit, "fallback"))
        + call_words(timeline.call, timeline.file, timeline.line),
        (Cell(sum(seconds) if seconds else None), _place(timeline.file, timeline.line)),
        rows=[
            *(_compile(run, timeline, row) for row in timeline.compiles),
            *advice.rows(suggestions, key, run.trials, of_timeline(timeline)),
        ],
        open="all",
        refs=Refs(file=timeline.file, line=timeline.line, frame=timeline.compiles[0].frame),
        opens="fold",
        suggestion=advice.first_that_can_be_tried(suggestions),
    )


def _compile(run: Run, timeline: Timeline, row: CompileRow) -> Row:
    file, line = place_of(run, row.failed[0]) if row.failed else ("", 0)
    suggestions = advice_on(row.failed[0], timeline, run) if row.failed and not row.is_broken else []
    refs = Refs(file=file or timeline.file, line=line or timeline.line, frame=row.frame)
    seconds = None if row.refused or row.result is None else row.result.seconds
    sought = Sought("recompile", place=f"{timeline.file}:{timeline.line}") if row.number and timeline.file else None
    return Row(
        key := ("compile", row.frame),
        _compile_words(row),
        (Cell(seconds), _place(file, line)),
        rows=list(_details(row, key)) if row.number else (),
        refs=refs,
        opens="edit",
        repro=sought,
        suggestion=advice.first_that_can_be_tried(suggestions),
    )


def _compile_words(row: CompileRow) -> Words:
    if not row.number:
        return words("compile 0  ", (row.frame, "accent"), ("  the first", "dim"))
    name = "not compiled" if row.refused else f"compile {row.number}"
    sign = f"  {SEVERITY_SIGNS['fallback']} "
    limit = f"  ({row.result.why})" if row.refused and row.result and row.result.why else ""
    return words(f"{name}  ", (row.frame, "accent"), (sign, "fallback"), why(row), (limit, "dim"))


def _details(row: CompileRow, key: Hashable) -> Iterator[Row]:
    """Each version that did not fit, with its guard and the lines that caused it."""
    if not row.failed:
        yield Row((key, "reason"), words(row.reason))
    for place, failed in enumerate(row.failed):
        name = (key, place)
        against = f"{failed.against} {MARKS['arrow']} " if failed.against else ""
        below = []
        if failed.expected or failed.actual:
            both = f"expected {failed.expected or 'something else'}, got {failed.actual or 'an unknown value'}"
            below.append(Row((name, "values"), words((both, "dim"))))
        if failed.code:
            below.append(Row((name, "code"), words((f"the guard: {failed.code}", "dim"))))
        below += stacks.rows(failed.stack, (name, "stack"))
        yield Row((name, "guard"), words(against + guard_words(failed)), rows=below, open="all", opens="fold")


def _place(file: str, line: int) -> Cell:
    return Cell(Place(file, line) if file else "")


def made(timeline: Timeline) -> list[CompileRow]:
    """Its compiles, without what the limit forbade."""
    return [row for row in timeline.compiles if not row.refused]


def why(row: CompileRow) -> str:
    """Why a compile was made, or would have been: the guard that failed, else torch's reason."""
    return guard_words(row.failed[0]) if row.failed else row.reason.partition("\n")[0] or "first compile"


def again_words(recompiled: Recompiled) -> str:
    """Why a frame was compiled again, in a line."""
    return guard_words(recompiled.failed[0]) if recompiled.failed else recompiled.reason.partition("\n")[0]


def guard_words(failed: FailedGuard) -> str:
    """What a guard expected, and what was there: "size 0 of x is 3, and was 2"."""
    of = f"{failed.what} of " if failed.what else ""
    name = shown(failed.source)
    if not failed.source or not (failed.actual or failed.expected):
        return failed.text.partition("  # ")[0].rstrip()
    if not failed.actual:
        return f"{of}{name} is no longer {failed.expected}"  # gone, or of a trace, which has no values
    if failed.kind == "key":
        return f"{name} has the keys {failed.actual}, and had {failed.expected.replace('not a key', 'no key')}"
    was = failed.expected.replace("the same ", "another ", 1) if failed.kind == "identity" else failed.expected
    return f"{of}{name} is {failed.actual}, and was {was}"


def as_json(run: Run) -> object:
    """Each function that was compiled again, compile by compile, guard by guard; and what is near its limit."""
    found = timelines(run)
    near = [(each, each.limit) for each in found if each.limit]
    return {
        "functions": [
            {
                **picked(timeline, "function file line"),
                "limit": vars(timeline.limit) if timeline.limit else None,
                "compiles": [
                    {
                        **picked(row, "frame reason refused"),
                        "seconds": row.result.seconds if row.result else None,
                        "entries": row.result.entries if row.result else None,
                        "failed": to_builtins(row.failed),
                    }
                    for row in timeline.compiles
                ],
                "suggestions": [advice.as_json(each, run.trials) for each in suggestions_for(run, timeline)],
            }
            for timeline in found
        ],
        "near_their_limit": [
            f"{each.function} ({near_place(each.file, each.line)}): {limit.words}" for each, limit in near
        ],
    }
