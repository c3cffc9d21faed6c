"""Show what torch checks before it uses compiled code, what each check costs, and which one made it compile again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.guards import Failures, by_source, share
from idbg.format import amounts
from idbg.format.amounts import counted, evaluation, percentage
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import FrameGuards, Guard
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views.tree import NO_OPTIONS, Cell, Column, Options, Place, Refs, Row, Section, Table, words

TITLE = "Guards"
NONE = "no guards: no frame was compiled"
_MANY = 200  # guards of a frame from which it is folded on the screen at first
_DEAREST = 3  # frames whose guards cost most: unfolded in text, as those of which one failed
_COLUMNS = (
    Column("kind", rank=1),
    Column("evaluates", "evaluation", 3),
    Column("share", "share", 0),
    Column("line", "place", 2),
    Column("compiled", rank=4),
)


@dataclass(frozen=True)
class _Shown:
    """What every row needs."""

    run: Run
    options: Options
    failures: Failures


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """A row a frame, those with a failed guard and then the most expensive first; below it its guards by source, or
    one by one by cost (`order` 1); `narrow`: only those that failed.
    """
    if not count(run):
        return Section(TITLE, NONE)
    shown = _Shown(run, options, Failures(run))
    frames = list(run.decided.last(FrameGuards).values())
    failed = {each.frame: _failed(each, shown) for each in frames}
    frames.sort(key=lambda each: (not failed[each.frame], -(each.seconds or 0.0)))
    dearest = {each.frame for each in sorted(frames, key=lambda each: -(each.seconds or 0.0))[:_DEAREST]}
    if options.narrow:
        frames = [each for each in frames if failed[each.frame]]
    rows = [_frame(each, shown, failed[each.frame], each.frame in dearest) for each in frames]
    again = sum(map(len, failed.values()))
    summary = f"{counted(count(run), 'guard')}, {again:,} failed" if again else counted(count(run), "guard")
    return Section(
        TITLE, summary, count(run), "warning" if again else "ok", (Table(_COLUMNS, rows, "guard", code=True),)
    )


def count(run: Run) -> int:
    """All guards."""
    return sum(len(each.guards) for each in run.decided.last(FrameGuards).values())


def _failed(each: FrameGuards, shown: _Shown) -> list[Guard]:
    return [guard for guard in each.guards if shown.failures.of(each.frame, guard)] if shown.failures else []


def _frame(each: FrameGuards, shown: _Shown, failed: Sequence[Guard], dear: bool) -> Row:
    frame = shown.run.frames.get(each.frame, Frame(each.frame, "?"))
    of_call = share(shown.run, each)
    number = counted(len(each.guards), "guard")
    number += f" and {each.dropped:,} not recorded" if each.dropped else ""
    taking = f", {percentage(100 * of_call.part)} of a call" if of_call is not None else ""
    few = len(each.guards) <= _MANY
    in_text = bool(failed) or dear
    worst = f"{SEVERITY_SIGNS['fallback']} {len(failed):,} failed" if failed else ""
    cells = (Cell(""), Cell(each.seconds), Cell(""), _place(frame.file, frame.line), Cell(worst, "fallback"))
    return Row(
        ("frame", each.frame),
        words((f"{spoken(frame)} ", "strong"), f"{each.frame}  {number}{taking}"),
        cells,
        rows=partial(_in_frame, each, shown, failed),
        open="all" if few and in_text else "screen" if few else "text" if in_text else "",
        refs=Refs(frame=each.frame, file=frame.file, line=frame.line),
        opens="fold",
    )


def _in_frame(each: FrameGuards, shown: _Shown, those_failed: Sequence[Guard]) -> Iterator[Row]:
    """What the guards cost, then each; those with one source in one row, a guard that failed first."""
    yield Row(("cost", each.frame), words((cost(shown.run, each), "dim")))
    if each.left_out:
        parts = (f"{left.count} {left.kind}" + (f" ({left.why})" if left.why else "") for left in each.left_out)
        text = f"requested by Dynamo, and not evaluated on their own: {'; '.join(parts)}"
        yield Row(("left out", each.frame), words((text, "dim")))
    failed = {id(guard) for guard in those_failed}
    guards = those_failed if shown.options.narrow else each.guards
    if shown.options.order % 2:
        for guard in sorted(guards, key=lambda guard: -(guard.seconds or 0.0)):
            yield _guard(guard, each, shown)
        return
    groups = by_source(guards).items()
    ordered = sorted(groups, key=lambda group: (not failed.intersection(map(id, group[1])), -(taken(group[1]) or 0)))
    for source, ones in ordered:
        yield _guard(ones[0], each, shown) if len(ones) == 1 else _group(source, ones, each, shown)


def _group(source: str, ones: Sequence[Guard], each: FrameGuards, shown: _Shown) -> Row:
    """All guards of one expression."""
    compiled = sorted({again for guard in ones for again in shown.failures.of(each.frame, guard)})
    at = next((guard for guard in ones if guard.file), ones[0])
    kinds = dict.fromkeys(guard.kind for guard in ones)
    return Row(
        ("source", each.frame, source),
        words(source or "the whole frame", (f"  {counted(len(ones), 'guard')}", "dim")),
        (
            Cell(", ".join(kinds), "dim"),
            Cell(seconds := taken(ones)),
            _share(seconds, each),
            _place(at.file, at.line),
            _compiled(compiled),
        ),
        rows=lambda: [_guard(guard, each, shown) for guard in ones],
        open="text" if compiled else "",
        refs=Refs(frame=each.frame),
        opens="fold",
    )


def _guard(guard: Guard, each: FrameGuards, shown: _Shown) -> Row:
    code = " and ".join(guard.code)
    return Row(
        ("guard", each.frame, guard.kind, guard.source, guard.code),
        words(code or guard.source or guard.kind),
        (
            Cell(guard.kind, "dim"),
            Cell(guard.seconds),
            _share(guard.seconds, each),
            _place(guard.file, guard.line),
            _compiled(shown.failures.of(each.frame, guard)),
        ),
        refs=Refs(frame=each.frame, file=guard.file, line=guard.line),
        opens="edit",
        copied=code or guard.source,
    )


def _compiled(frames: Sequence[str]) -> Cell:
    return Cell(f"{MARKS['arrow']} {', '.join(frames)}" if frames else "", "fallback")


def _place(file: str, line: int) -> Cell:
    return Cell(Place(file, line) if file else "")


def _share(seconds: float | None, each: FrameGuards) -> Cell:
    """Of what one evaluation of all guards of the frame takes."""
    return Cell(seconds / each.seconds if seconds and each.seconds else None, "dim")


def taken(guards: Iterable[Guard]) -> float | None:
    """Seconds of those that were measured; None where none was."""
    known = [guard.seconds for guard in guards if guard.seconds is not None]
    return sum(known) if known else None


def cost(run: Run, guards: FrameGuards) -> str:
    """How many checks Dynamo requested, what one evaluation of all takes, and its share of a call; or what was not
    measured.
    """
    requested = f"{counted(guards.requested, 'guard')} requested by Dynamo; " if guards.requested is not None else ""
    if guards.seconds is None:
        why = "torch did not evaluate them while it compiled, or they cannot run alone"
        return f"{requested}cost not measured: {'it is not in a trace' if run.program.is_trace else why}"
    cold = f" ({evaluation(guards.cold)} with cold caches)" if guards.cold is not None else ""
    all_take = f"{requested}all of them take {evaluation(guards.seconds)}{cold}"
    of_call = share(run, guards)
    if of_call is None:
        return f"{all_take}; share of a call unknown: no call of the compiled graph was measured"
    which = "the only call, which was the first" if of_call.first else "the fastest call"
    graph = amounts.duration(of_call.call * 1000)
    return f"{all_take}: {amounts.share(of_call.part)} of {which} (its graph took {graph} of CPU time)"


def as_json(run: Run) -> object:
    """Each frame with its guards, their costs in seconds, and the compiles that each caused."""
    failures = Failures(run)
    return [_frame_json(run, guards, failures) for guards in run.decided.last(FrameGuards).values()]


def _frame_json(run: Run, guards: FrameGuards, failures: Failures) -> dict[str, object]:
    of_call = share(run, guards)
    return {
        **picked(guards, "frame seconds left_out dropped"),
        "cold_seconds": guards.cold,
        "call_seconds": of_call.call if of_call else None,
        "call_is_first": of_call.first if of_call else None,
        "share_of_call": of_call.part if of_call else None,
        "asked": guards.requested,
        "guards": [
            {
                **picked(guard, "kind source code file line seconds"),
                "stack": guard.stack,
                "caused": failures.of(guards.frame, guard),
            }
            for guard in guards.guards
        ],
    }
