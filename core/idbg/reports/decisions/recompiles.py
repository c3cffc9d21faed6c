"""Which functions were compiled again, for which guard each time, and what can be done about it?"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from msgspec import to_builtins

from idbg.analysis.decisions.recompile_advice import advice_on
from idbg.analysis.decisions.recompiles import CompileRow, Timeline, limits, place_of, shown, timelines
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.format.amounts import counted, duration
from idbg.format.file_names import near_place
from idbg.format.glyphs import SEVERITY_SIGNS
from idbg.schema.decisions.decision import Decision
from idbg.schema.decisions.dynamo import FailedGuard
from idbg.schema.runs import Run

FUNCTIONS = 50  # in text
ADVICE = 3  # of one function, in text


def text(run: Run) -> Iterable[str]:
    """What is about to stop being compiled, then a timeline of each function that was compiled again."""
    yield headline(run)
    yield from (f"{SEVERITY_SIGNS['fallback']} {warning}" for warning in warnings(run))
    found = timelines(run)
    for timeline in found[:FUNCTIONS]:
        yield ""
        compiles = counted(len(made(timeline)), "compile")
        yield f"{timeline.function} ({near_place(timeline.file, timeline.line)}): {compiles}"
        for row in timeline.compiles:
            yield f"  {row.number}  {words(row)}{_place(run, row)}"
        for suggestion in advice(run, timeline)[:ADVICE]:
            yield from of_suggestion(suggestion)
    if len(found) > FUNCTIONS:
        yield f"… and {counted(len(found) - FUNCTIONS, 'function')} more (--json has all of them)"


def of_suggestion(suggestion: Suggestion) -> Iterator[str]:
    """What to do, and below it in code."""
    yield f"  → {suggestion.words}"
    if suggestion.code:
        yield f"      {suggestion.code}"


def made(timeline: Timeline) -> list[CompileRow]:
    """Its compiles, without what the limit forbade."""
    return [row for row in timeline.compiles if not row.refused]


def headline(run: Run) -> str:
    """How many recompiles there were, of how many functions."""
    found = timelines(run)
    again = sum(len(made(timeline)) - 1 for timeline in found)
    if not again and not any(row.refused for timeline in found for row in timeline.compiles):
        return "nothing was compiled again"
    functions = sum(len(made(timeline)) > 1 for timeline in found)
    return f"{counted(again, 'recompile')} of {counted(functions, 'function')}"


def warnings(run: Run) -> list[str]:
    """A line for each function whose limit is near or was hit."""
    return [
        f"{each.function} ({near_place(each.file, each.line)}): {each.limit.words}"
        for each in limits(run)
        if each.limit
    ]


def words(row: CompileRow) -> str:
    """Why this compile was made, or was not, and how long it took: "size 0 of x is 3, and was 2   0.2 s"."""
    return f"{why(row)}   {took(row)}".rstrip()


def took(row: CompileRow) -> str:
    """How long it took; "" where torch told nothing of it, or nothing was compiled."""
    seconds = row.result.seconds if row.result is not None else None
    return "" if seconds is None or row.refused else duration(1000 * seconds)


def why(row: CompileRow) -> str:
    """The guard for which it was made, or was not."""
    failed = row.failed[0] if row.failed else None
    told = of_guard(failed) if failed is not None else row.reason.partition("\n")[0] or "first compile"
    return f"not compiled ({row.result.why if row.result else ''}): {told}" if row.refused else told


def of_guard(failed: FailedGuard) -> str:
    """What a guard expected, and what was there: "size 0 of x is 3, 2 was expected"."""
    of = f"{failed.what} of " if failed.what else ""
    name = shown(failed.source)
    if not failed.source or not (failed.actual or failed.expected):
        return failed.text.partition("  # ")[0].rstrip()
    if not failed.actual:
        return f"{of}{name} is no more: {failed.expected}"
    return f"{of}{name} is {failed.actual}, and was {failed.expected}"


def _place(run: Run, row: CompileRow) -> str:
    file, line = place_of(run, row.failed[0]) if row.failed else ("", 0)
    return f"   {near_place(file, line)}" if file else ""


def advice(run: Run, timeline: Timeline) -> list[Suggestion]:
    """What can be done about the recompiles of a function: the best for each guard that failed, what failed most often
    first; then what else would do.
    """
    guards = [row.failed[0] for row in timeline.compiles if row.failed]
    times = Counter((guard.source, guard.kind, guard.what) for guard in guards)
    first = {(guard.source, guard.kind, guard.what): guard for guard in reversed(guards)}
    lists = [advice_on(first[key], timeline, run) for key, _ in times.most_common()]
    found: dict[str, Suggestion] = {}
    for rank in zip_longest(*lists):
        for suggestion in rank:
            if suggestion is not None:
                found.setdefault(suggestion.words, suggestion)
    return list(found.values())


def as_json(run: Run) -> object:
    """Each function that was compiled again, compile by compile, guard by guard; and what is near its limit."""
    return {
        "functions": [
            {
                "function": timeline.function,
                "file": timeline.file,
                "line": timeline.line,
                "limit": vars(timeline.limit) if timeline.limit else None,
                "compiles": [
                    {
                        "frame": row.frame,
                        "reason": row.reason,
                        "refused": row.refused,
                        "seconds": row.result.seconds if row.result else None,
                        "entries": row.result.entries if row.result else None,
                        "failed": to_builtins(row.failed),
                    }
                    for row in timeline.compiles
                ],
                "suggestions": [vars(each) for each in advice(run, timeline)],
            }
            for timeline in timelines(run)
        ],
        "near_their_limit": warnings(run),
    }


def about(run: Run) -> Iterable[Decision]:
    """Each recompile: at the line that caused the guard, and at its function's."""
    for timeline in timelines(run):
        for row in timeline.compiles[1:]:
            told = f"{timeline.function} is compiled again: {why(row)}"
            places: Iterator[tuple[str, int]] = iter([(timeline.file, timeline.line)])
            if row.failed:
                places = iter(dict.fromkeys((place_of(run, row.failed[0]), (timeline.file, timeline.line))))
            for file, line in places:
                if file:
                    yield Decision(
                        kind="recompile",
                        words=told,
                        why=row.reason.partition("\n")[0],
                        frame=row.frame,
                        file=file,
                        line=line,
                    )
