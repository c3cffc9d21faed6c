"""Show which frames were compiled, how each ended, and which functions Dynamo skipped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import to_builtins

from idbg.analysis.decisions.break_report import whose
from idbg.analysis.decisions.frames import FrameRow, rows, spoken_name
from idbg.format.amounts import counted
from idbg.format.failures import headline as failure_headline
from idbg.format.failures import place_of
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS, VERDICT_SIGNS
from idbg.schema.decisions.dynamo import FrameGuards, FrameResult, Skip, SkipsDropped
from idbg.schema.events import FrameFailed
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views import stacks
from idbg.views.frame_graphs import FrameGraphs, call_words
from idbg.views.recompiles import again_words
from idbg.views.tree import (
    NO_OPTIONS,
    Block,
    Cell,
    Column,
    Options,
    Place,
    Refs,
    Row,
    Section,
    Table,
    Tone,
    Verdict,
    words,
)

TITLE = "Frames"
REASONS: dict[str, str] = {
    "frame is in the Dynamo skipfiles list": "Dynamo never compiles code of this file",
    "no tensor-related objects found in frame": "no tensors in it",
    "frame has already started executing": "it was already running",
    "Dynamo tracing is disabled": "Dynamo is disabled",
    "": "this version of torch reports no reason",
}
END_WORDS: dict[str, str] = {
    "compiled": "compiled",
    "eager": "left to eager",
    "skipped": "skipped",
    "failed": "failed",
}
_LOOKS: dict[str, tuple[str, Tone]] = {
    "compiled": (VERDICT_SIGNS["clean"], "clean"),
    "eager": (SEVERITY_SIGNS["fallback"], "fallback"),
    "skipped": (SEVERITY_SIGNS["slow"], "dim"),
    "failed": (VERDICT_SIGNS["failed"], "reject"),
    "": (VERDICT_SIGNS["waiting"], "dim"),
}
_COLUMNS = (
    Column("ops", "count", 0),
    Column("kernels", "count", 1),
    Column("breaks", "count", 3),
    Column("guards", "count", 0),
    Column("time", "seconds", 4),
    Column("line", "place", 2),
)


@dataclass(frozen=True)
class _Known:
    """What every row needs, looked up once."""

    run: Run
    graphs: FrameGraphs
    again: dict[str, str]
    """Frame -> why it was compiled again."""
    failed: dict[str, FrameFailed]
    results: dict[str, FrameResult]
    guards: dict[str, FrameGuards]


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a frame, those that its compiled code called below it, those that are alike in one; then failures that
    belong to no frame, and what was skipped.
    """
    again = {one.frame: again_words(one) for one in run.recompiles}
    failed = {one.frame: one for one in run.frame_failures}
    results = run.decided.last(FrameResult)
    known = _Known(run, FrameGraphs(run), again, failed, results, run.decided.last(FrameGuards))
    listed = rows(run)
    body: list[Block] = [Table(_COLUMNS, list(_tree(listed, known)), "function")] if listed else []
    body += _failures(run)
    body += _skips(run)
    ends = {result.end for result in results.values()}
    bad = "failed" in ends or run.frame_failures
    verdict: Verdict = "error" if bad else "warning" if ends & {"eager", "skipped"} else "ok"
    return Section(TITLE, headline(run), count(run), verdict, tuple(body))


def count(run: Run) -> int:
    """Compiles of frames."""
    return len(run.frames)


def headline(run: Run) -> str:
    """How many frames ended how; why there are none, if there are none."""
    results, skips = run.decided.last(FrameResult), run.decided.every(Skip)
    if not run.frames and not results:
        why = "Dynamo skipped every function" if skips else "torch.compile was called for no function"
        return f"nothing was compiled: {why}"
    ends: Counter[str] = Counter(result.end for name, result in results.items() if name in run.frames)
    parts = [
        counted(len(run.frames), "frame"),
        *(f"{ends[end]} {text}" for end, text in END_WORDS.items() if ends[end]),
    ]
    if unknown := len(run.frames) - ends.total():
        parts.append(f"{unknown} without a known end")
    if refused := len(results) - ends.total():
        parts.append(f"{counted(refused, 'compile')} refused by the recompile limit")
    return ", ".join(parts)


def _tree(listed: Sequence[FrameRow], known: _Known) -> Iterator[Row]:
    """The frames of one depth, each with the deeper ones that follow it below it."""
    at = 0
    while at < len(listed):
        end = at + 1
        while end < len(listed) and listed[end].depth > listed[at].depth:
            end += 1
        yield _frame(listed[at], listed[at + 1 : end], known)
        at = end


def _frame(row: FrameRow, below: Sequence[FrameRow], known: _Known) -> Row:
    sign, tone = _LOOKS.get(row.end, _LOOKS[""])
    times = f"  {MARKS['times']}{row.count}, alike" if row.count > 1 else ""
    nodes = known.graphs.nodes(row.ids[0])
    own = list(_details(row, known))
    return Row(
        ("frame", row.ids[0]),
        words(
            (f"{sign} ", tone),
            (row.name, "strong"),
            (f"  {row.ids[0]}{times}", "accent"),
            ("".join(f", {fact}" for fact in _facts(row)), "dim"),
        )
        + (() if row.depth or row.resumed else call_words(known.run.frames[row.ids[0]].call, row.file, row.line)),
        _cells(row, known),
        rows=partial(lambda: [*own, *_tree(below, known)]) if own or below else (),
        open="all" if below or row.end == "failed" else "text" if row.why else "",
        refs=Refs(nodes=nodes, frame=row.ids[0], file=row.file, line=row.line),
        opens="node" if nodes else "fold",
    )


def _facts(row: FrameRow) -> Iterator[str]:
    if row.end != "compiled":
        yield END_WORDS.get(row.end, "its end is not known")
    if row.attempts > row.count:
        yield f"traced {counted(row.attempts, 'time')}"
    if row.lookups:
        yield f"{row.hits} of {row.lookups} cache lookups hit"


def _cells(row: FrameRow, known: _Known) -> tuple[Cell, ...]:
    found = [known.guards[frame] for frame in row.ids if frame in known.guards]
    guards = sum(len(each.guards) + each.dropped for each in found) if found else row.guards
    return (
        Cell(row.ops),
        Cell(row.kernels or None),
        Cell(row.breaks or None, "fallback"),
        Cell(guards),
        Cell(row.seconds),
        Cell(Place(row.file, row.line) if row.file else ""),
    )


def _details(row: FrameRow, known: _Known) -> Iterator[Row]:
    """Those that are alike; why it was compiled again, traced again, or not compiled; where it failed."""
    key = ("frame", row.ids[0])
    for frame in row.ids if row.count > 1 else ():
        yield _alike(frame, row, known)
    whys: list[tuple[str, Tone]] = []
    if row.count == 1 and row.ids[0] in known.again:
        whys.append((f"compiled again: {known.again[row.ids[0]]}", "dim"))
    whys += [(f"traced again: {restart}", "dim") for restart in row.restarts]
    whys += [(row.why, "")] if row.why else []
    whys += [(str(failure_headline(known.failed[id].failure)), "reject") for id in row.ids if id in known.failed]
    for number, why in enumerate(whys):
        yield Row((key, number), words(why))
    result = known.results.get(row.ids[0])
    if result is not None and result.end == "failed":
        yield from stacks.rows(result.stack, (key, "stack"))


def _alike(frame: str, row: FrameRow, known: _Known) -> Row:
    """One of several that are alike."""
    result = known.results.get(frame)
    nodes = known.graphs.nodes(frame)
    again = f"  {known.again[frame]}" if frame in known.again else ""
    return Row(
        ("alike", frame),
        words((frame, "accent"), (again, "dim")),
        (*[Cell("")] * 4, Cell(result.seconds if result is not None else None), Cell("")),
        refs=Refs(nodes=nodes, frame=frame, file=row.file, line=row.line),
        opens="node" if nodes else "",
    )


def _failures(run: Run) -> Iterator[Row]:
    """What failed before it had a frame; else the run's own failure where nothing else shows it."""
    loose = [one.failure for one in run.frame_failures if one.frame not in run.frames]
    if run.failure is not None and run.failure.kind != "cancelled" and not run.frame_failures:
        loose.append(run.failure)
    for number, failure in enumerate(loose):
        file, line = place_of(failure)
        yield Row(
            ("failure", number),
            words((f"{VERDICT_SIGNS['failed']} ", "reject"), str(failure_headline(failure))),
            rows=[Row(("hint", number), words((failure.hint, "dim")))] if failure.hint else (),
            open="all",
            refs=Refs(file=file, line=line),
            opens="edit",
            copied=failure.message,
        )


def _not_listed(run: Run) -> int:
    return sum(each.count for each in run.decided.every(SkipsDropped))


def _skips(run: Run) -> Iterator[Row]:
    """The functions that Dynamo skipped: the user's, then the others'."""
    skips, dropped = run.decided.every(Skip), _not_listed(run)
    if not skips:
        return
    own = [skip for skip in skips if whose(skip.file) == "user"]
    others = [skip for skip in skips if whose(skip.file) != "user"]
    whom = f", {len(own):,} of them yours" if own else ", all of torch and libraries"
    listed = f"; {len(skips):,} are listed" if dropped else ""
    rest: list[Row] = [_skip(skip, len(own) + at) for at, skip in enumerate(others)]
    if own and others:
        text = f"{counted(len(others), 'function')} of torch and libraries"
        rest = [Row(("skips", "others"), words((text, "dim")), rows=rest, opens="fold")]
    yield Row(
        ("skips",),
        words(
            (f"{SEVERITY_SIGNS['slow']} ", "dim"),
            (f"{counted(len(skips) + dropped, 'function')} skipped", "strong"),
            (whom + listed, "dim"),
        ),
        rows=[*(_skip(skip, at) for at, skip in enumerate(own)), *rest],
        open="text" if own else "",
        opens="fold",
    )


def _skip(skip: Skip, number: int) -> Row:
    at = Place(skip.file, skip.line)
    shown = words(spoken_name(skip.function), "  ", at, (f"  {plain(skip)}", "dim"))
    return Row(("skip", number), shown, refs=Refs(file=skip.file, line=skip.line), opens="edit")


def plain(skip: Skip) -> str:
    """Why it was skipped, in plain words where there are some, else in torch's."""
    return REASONS.get(skip.reason, skip.reason)


def as_json(run: Run) -> object:
    """Each frame by itself, with what became of it and its depth; each function that was skipped."""
    results = run.decided.last(FrameResult)
    return {
        "frames": [
            {
                **picked(
                    row, "depth function file line why seconds attempts restarts ops guards breaks graphs kernels"
                ),
                "frame": row.ids[0],
                "parent": run.frames[row.ids[0]].parent,
                "after_line": row.resumed or None,
                "end": row.end or None,
                "stack": to_builtins(results[row.ids[0]].stack) if row.end else [],
                "cache_hits": row.hits,
                "cache_asked": row.lookups,
            }
            for row in rows(run, folded=False)
        ],
        "left_alone": [skip.facts() for skip in run.decided.every(Skip)],
        "left_alone_not_listed": _not_listed(run),
    }
