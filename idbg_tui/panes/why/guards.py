"""What does each compiled frame guard, what does a look at it cost, and which guard made torch compile again?"""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.guards import Failures, by_source, matches, share
from idbg.format import file_names
from idbg.format.amounts import NOTHING, column_share, counted, evaluation, percentage
from idbg.format.glyphs import MARKS, SEVERITY_SIGNS
from idbg.schema.decisions.dynamo import FrameGuards, Guard
from idbg.schema.runs import Run
from idbg_tui.panes.why.table import Column, Table
from idbg_tui.widgets.section_rows import INDENT, Look, Row, Rows, sign, widest

FILTERS = True
NONE = "no guards were told: only a frame that was compiled has some"
_MANY = 200  # guards of a frame from which it is folded at first


@dataclass
class _Shown:
    """What every row of the view needs; what only rows that are seen need is looked up when the first of them is."""

    run: Run
    look: Look
    table: Table

    @cached_property
    def failures(self) -> Failures:
        """Which compiles each guard caused."""
        return Failures(self.run)

    @cached_property
    def totals(self) -> dict[str, float]:
        """Seconds of a frame's guards, each evaluated alone."""
        guarded = self.run.decided.guards.values()
        return {each.frame: sum(guard.seconds or 0.0 for guard in each.guards) for each in guarded}


def count(run: Run) -> int:
    """All guards."""
    return sum(len(each.guards) for each in run.decided.guards.values())


def rows(run: Run, look: Look) -> Sequence[Row]:
    """Frame by frame: guards by what they are about, or in one list with the dearest first (`order` 1); `hiding` leaves
    out those that never failed.
    """
    guards = [guard for each in run.decided.guards.values() for guard in each.guards]
    if not guards:
        return []
    places = widest((_place(guard, look) for guard in guards[:1000]), 26)
    kinds = widest((guard.kind for guard in guards[:1000]), 20)
    columns = (
        Column("kind", kinds, 1),
        Column("evaluates", 11, 3, right=True),
        Column("share", 7, 0, right=True),
        Column("line", places, 2),
        Column("compiled", 10, 4),
    )
    ordered = ("by source", "the dearest first")[look.order % 2]
    hidden = ", those that failed" if look.hiding else ""
    shown = _Shown(run, look, Table(columns, f"guard ({ordered}{hidden})"))
    found = Rows()
    found.add(shown.table.heads())
    collecting = gc.isenabled()
    gc.disable()  # so many new objects make it look through all that there is: 0.2 of 0.29 s for a letter
    try:
        for each in run.decided.guards.values():
            _add_frame(found, each, shown)
    finally:
        if collecting:
            gc.enable()
    return found if len(found) > 1 else []


def _add_frame(found: Rows, each: FrameGuards, shown: _Shown) -> None:
    """The frame's own row, and its guards if it is unfolded, or if some are looked for."""
    look = shown.look
    guards = [guard for guard in each.guards if _wanted(guard, each.frame, shown)]
    if not guards and (look.query or look.hiding):
        return
    fold = ("frame", each.frame)
    is_open = bool(look.query) or look.is_open(fold, at_first=len(each.guards) <= _MANY)
    found.add_later(fold, partial(_frame_row, each, guards, shown, is_open))
    if not is_open:
        return
    if look.order % 2:
        for guard in sorted(guards, key=lambda guard: -(guard.seconds or 0.0)):
            _add_guard(found, guard, each, shown, (fold,))
    else:
        _add_by_source(found, guards, each, shown, fold)


def _frame_row(each: FrameGuards, guards: Sequence[Guard], shown: _Shown, is_open: bool) -> Row:
    """Of the frame and those of its `guards` that are listed."""
    fold = ("frame", each.frame)
    frame = shown.run.frames.get(each.frame)
    name = f"{spoken(frame)} " if frame is not None else ""
    number = counted(len(each.guards), "guard")
    some = f"{len(guards):,} of {number}" if len(guards) < len(each.guards) else number
    some += f" and {each.dropped:,} that are not kept" if each.dropped else ""
    failed = sum(bool(_compiles(guard, each.frame, shown)) for guard in guards)
    worst = f"{SEVERITY_SIGNS['fallback']} {failed} failed" if failed else ""
    cells = [("", ""), (_seconds(each.seconds), ""), ("", ""), ("", ""), (worst, "fallback")]
    taken = share(shown.run, each)
    of_call = f", {percentage(100 * taken.part)} of a call" if taken is not None else ""
    words = [(f"{sign(is_open=is_open)} {name}", "strong"), (f"{each.frame}  {some}{of_call}", "")]
    place = (frame.file, frame.line) if frame is not None else ("", 0)
    return Row(fold, shown.table.row(words, cells), "fold", fold, is_open, (), each.frame, *place)


def _add_by_source(
    found: Rows, guards: Sequence[Guard], each: FrameGuards, shown: _Shown, fold: tuple[str, str]
) -> None:
    """Guards under what they are about; what has one guard only is told with it in one row."""
    for source, ones in by_source(guards).items():
        if len(ones) == 1:
            _add_guard(found, ones[0], each, shown, (fold,))
            continue
        own = ("source", each.frame, source)
        is_open = bool(shown.look.query) or shown.look.is_open(own)
        found.add_later(own, partial(_group, source, ones, each, shown, fold))
        if is_open:
            for guard in ones:
                _add_guard(found, guard, each, shown, (fold, own))


def _group(source: str, ones: Sequence[Guard], each: FrameGuards, shown: _Shown, inside: tuple[str, str]) -> Row:
    """The row of all guards about one expression."""
    own = ("source", each.frame, source)
    is_open = bool(shown.look.query) or shown.look.is_open(own)
    failed = sorted({again for guard in ones for again in _compiles(guard, each.frame, shown)})
    seconds = sum(guard.seconds for guard in ones if guard.seconds is not None)
    measured = seconds if any(guard.seconds is not None for guard in ones) else None
    words = [(f"{' ' * INDENT}{sign(is_open=is_open)} {source or 'the whole frame'}", "")]
    words += [(f"  {counted(len(ones), 'guard')}", "dim")]
    cells = [
        ("", ""),
        (_seconds(measured), ""),
        (_share(measured, each.frame, shown), "dim"),
        ("", ""),
        _again(failed),
    ]
    return Row(own, shown.table.row(words, cells), "fold", own, is_open, (inside,), each.frame)


def _add_guard(found: Rows, guard: Guard, each: FrameGuards, shown: _Shown, inside: tuple[object, ...]) -> None:
    found.add_later(_key(guard, each), partial(_guard, guard, each, shown, inside))


def _key(guard: Guard, each: FrameGuards) -> tuple[object, ...]:
    return "guard", each.frame, guard.kind, guard.source, guard.code


def _guard(guard: Guard, each: FrameGuards, shown: _Shown, inside: tuple[object, ...]) -> Row:
    again = _compiles(guard, each.frame, shown)
    code = " and ".join(guard.code)
    words = [(" " * (2 + INDENT * len(inside)) + (code or guard.source or guard.kind), "")]
    cells = [
        (guard.kind, "dim"),
        (_seconds(guard.seconds), ""),
        (_share(guard.seconds, each.frame, shown), "dim"),
        (_place(guard, shown.look), "dim"),
        _again(again),
    ]
    return Row(
        _key(guard, each),
        shown.table.row(words, cells),
        "edit",
        inside=inside,
        frame=each.frame,
        file=guard.file,
        line=guard.line,
        copied=code or guard.source,
    )


def _wanted(guard: Guard, frame: str, shown: _Shown) -> bool:
    if shown.look.hiding and not _compiles(guard, frame, shown):
        return False
    return not shown.look.query or matches(guard, shown.look.query)


def _compiles(guard: Guard, frame: str, shown: _Shown) -> tuple[str, ...]:
    """The compiles that this guard caused."""
    return shown.failures.of(frame, guard)


def _again(compiles: Sequence[str]) -> tuple[str, str]:
    return (f"{MARKS['arrow']} {', '.join(compiles)}" if compiles else "", "fallback")


def _place(guard: Guard, look: Look) -> str:
    return file_names.place(guard.file, guard.line, look.files) if guard.file else ""


def _seconds(seconds: float | None) -> str:
    return NOTHING if seconds is None else evaluation(seconds)


def _share(seconds: float | None, frame: str, shown: _Shown) -> str:
    """Of all that the frame's guards take one by one."""
    total = shown.totals[frame]
    return column_share(seconds / total) if seconds and total else NOTHING
