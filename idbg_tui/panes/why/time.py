"""Where does the time of a compile go, while it goes on and afterwards: as a tree, a picture, beside other runs?"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Timing, Use
from idbg.format.amounts import NOTHING, column_share, counted
from idbg.format.glyphs import LEVELS, VERDICT_SIGNS
from idbg.reports.decisions import time as report
from idbg.reports.decisions.time import WORDS, seconds_words, span_words
from idbg.schema.code import Kernel
from idbg.schema.decisions.times import Span
from idbg.schema.runs import Run
from idbg_tui.panes.why import flame
from idbg_tui.panes.why.rows import INDENT, Look, Row, Rows, fixed, said, sign
from idbg_tui.panes.why.table import Column, Table

FILTERS = False
NONE = "nothing was compiled: no time went into it"
_LEAST = 0.005  # of the time: less is left out, until H
_MANY = 300  # spans from which frames are folded at first
_BAR = 14  # cells
_WIDE = 100  # cells of a row from which there is room for bars
_EARLIER = 5  # runs: what is typical is their median
_FRAMES = ("frame", "frame compile", "backward")
_Name = tuple[str, str, str, int]
"""A span in any run: frame, name, what it is of, and the how-manieth of these it is."""


@dataclass(frozen=True)
class _Shown:
    """What every row needs."""

    run: Run
    look: Look
    timings: Sequence[Timing]
    total: float
    table: Table
    kernels: dict[str, Kernel]
    typical: dict[_Name, float]

    @property
    def live(self) -> bool:
        return self.look.now is not None


def count(run: Run) -> int:
    """Spans are not counted: there are hundreds in each compile."""
    return 0


def rows(run: Run, look: Look) -> Sequence[Row]:
    """What dominates and what helps; then what the time was spent on and the tree, or (`order` 1) the picture."""
    timings = times.tree(run, look.now)
    spent = times.spent(timings)
    total = sum(each.seconds for each in spent)
    if not spent or not timings:
        return []
    typical = _typical(look)
    before = (Column("before", 8, 2, right=True),) if typical else ()
    # while it goes on, what grows in every row with each look is left out: a few rows are repainted, not all
    whole = (Column("own", 8, 1, right=True),) if look.now is None else ()
    part = (Column("share", 7, 3, right=True),) if look.now is None else ()
    table = Table((Column("time", 8, 4, right=True), *whole, *before, *part), "span")
    kernels = {kernel.name: kernel for kernel in run.kernels}
    shown = _Shown(run, look, timings, total, table, kernels, typical)
    found = Rows()
    _add_lead(found, shown)
    if look.order % 2:
        flame.add(found, timings, look)
        return found
    found.add(table.heads())
    _add_spent(found, shown)
    _add_tree(found, shown)
    _add_builds(found, shown)
    _add_against(found, shown)
    return found


def _add_lead(found: Rows, shown: _Shown) -> None:
    """What goes on now beside what is typical; afterwards what dominated, and what helps."""
    run, look = shown.run, shown.look
    lines: list[str] = []
    if shown.live:
        lines.append(_now(shown))
    else:
        lines.append(f"compiling took {seconds_words(shown.total)}; {report.HEATS[times.heat(run)]}")
        lines += report.dominating(run, shown.timings)
    for place, line in enumerate(lines):
        style = "accent" if shown.live else "" if not place else "dim" if line.startswith(" ") else "strong"
        for row in said(line.strip(), look, key=("lead", place), depth=int(line.startswith("  ")), style=style):
            found.add(row)


def _now(shown: _Shown) -> str:
    """The innermost span that goes on, beside what it takes mostly; and all of the compile so far."""
    open_ones = [
        timing for timing in shown.timings if timing.lasts and not timing.beside and timing.span.name not in times.OURS
    ]
    beside = sum(timing.lasts and timing.beside for timing in shown.timings)
    earlier = _totals(shown.look)
    whole = f", {seconds_words(earlier)} before" if earlier is not None else ""
    all_of_it = f"compiling for {seconds_words(shown.total)} so far{whole}"
    if not open_ones:
        return f"{all_of_it}: the program runs"
    inner = open_ones[-1]
    typical = shown.typical.get(_name(inner.span, shown.timings))
    usual = shown.look.typical.get(inner.span.name)  # of all of that phase, in earlier sessions too
    known = f", typically {seconds_words(usual)} for all of it" if usual is not None else ""
    known = f", {seconds_words(typical)} before" if typical is not None else known
    others = f", {counted(beside, 'build')} beside it" if beside else ""
    return f"{all_of_it}: {span_words(inner.span)} {seconds_words(inner.seconds)}{known}{others}"


# ---------------------------------------------------------------- what is typical


def _typical(look: Look) -> dict[_Name, float]:
    """Seconds of each span in the earlier runs: the median of those that had it."""
    took: dict[_Name, list[float]] = {}
    for timings, _ in _past(look):
        for name, timing in _named(timings):
            took.setdefault(name, []).append(timing.seconds)
    return {name: median(values) for name, values in took.items()}


_Past = tuple[Sequence[Timing], float]


def _past(look: Look) -> list[_Past]:
    """The spans of the last few earlier runs, and the seconds of all of each."""
    return [_ended(_Key(run)) for run in look.earlier[-_EARLIER:]]


class _Key:
    """A run that has ended: it is the same for ever."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.known = run.number, run.started, len(run.decided.spans)

    def __hash__(self) -> int:
        return hash(self.known)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.known == self.known


@lru_cache(maxsize=2 * _EARLIER)
def _ended(key: _Key) -> _Past:
    timings = times.tree(key.run)
    return timings, sum(each.seconds for each in times.spent(timings))


def _named(timings: Sequence[Timing]) -> Iterator[tuple[_Name, Timing]]:
    seen: dict[tuple[str, str, str], int] = {}
    for timing in timings:
        name = timing.span.frame, timing.span.name, timing.span.what
        seen[name] = seen.get(name, 0) + 1
        yield (*name, seen[name]), timing


def _name(span: Span, timings: Sequence[Timing]) -> _Name:
    return next(name for name, timing in _named(timings) if timing.span is span)


def _totals(look: Look) -> float | None:
    """How long the earlier runs compiled: the median."""
    totals = [total for _, total in _past(look)]
    return median(totals) if totals else None


# ---------------------------------------------------------------- the table and the tree


def _cells(
    shown: _Shown, time: float, own: float | None, before: float | None, share: float | None
) -> list[tuple[str, str]]:
    cells = [(seconds_words(time), "")]
    if not shown.live:
        cells.append(("" if own is None else seconds_words(own), "dim"))
    if shown.typical:
        cells.append(("" if before is None else seconds_words(before), "dim"))
    if not shown.live:
        cells.append(("" if share is None else column_share(share), ""))
    return cells


def _add_spent(found: Rows, shown: _Shown) -> None:
    """What the time was spent on, with bars; while it goes on always in the same order."""
    spent = times.spent(shown.timings)
    if shown.live:
        uses = list(WORDS)
        spent.sort(key=lambda each: uses.index(each.use))
    before: dict[Use, list[float]] = {}
    for timings, _ in _past(shown.look):
        for each in times.spent(timings):
            before.setdefault(each.use, []).append(each.seconds)
    fold = ("spent",)
    is_open = shown.look.is_open(fold, at_first=True)
    words = [(f"{sign(is_open=is_open)} ", ""), ("what it was spent on", "strong")]
    found.add(
        Row(
            fold,
            shown.table.row(words, _cells(shown, shown.total, None, _totals(shown.look), None)),
            "fold",
            fold,
            is_open,
        )
    )
    wide = max(len(WORDS[each.use]) for each in spent)
    for each in spent if is_open else ():
        if each.share < _LEAST and not shown.look.hiding and not shown.look.whole:
            continue
        bar = LEVELS[-1] * max(round(each.share * _BAR), 1) if shown.look.width >= _WIDE else ""
        words = [(f"{' ' * 2 * INDENT}{WORDS[each.use]:<{wide}}  ", ""), (bar, "accent")]
        typical = median(before[each.use]) if each.use in before else None
        drawn = shown.table.row(words, _cells(shown, each.seconds, None, typical, each.share))
        found.add(Row(("spent", each.use), drawn, inside=(fold,)))


def _add_tree(found: Rows, shown: _Shown) -> None:
    """Each span under the one that it is in; what is short is left out, and counted."""
    timings, look = shown.timings, shown.look
    many = len(timings) > _MANY
    open_folds: list[tuple[Hashable, bool]] = []  # by depth: the span, and whether what is in it is listed
    hidden_below, hidden = -1, 0
    least = 0.0 if look.hiding or look.whole else _LEAST * shown.total
    for place, (name, timing) in enumerate(_named(timings)):
        if 0 <= hidden_below < timing.depth:
            hidden += 1
            continue
        hidden_below = -1
        del open_folds[timing.depth :]
        if timing.seconds < least and not timing.lasts:
            hidden_below, hidden = timing.depth, hidden + 1
            continue
        if not all(is_open for _, is_open in open_folds):
            continue
        holds = place + 1 < len(timings) and timings[place + 1].depth > timing.depth
        fold = ("span", timing.span.id)
        is_open = not holds or look.is_open(fold, at_first=not (many and timing.span.name in _FRAMES))
        inside = tuple(key for key, _ in open_folds)
        open_folds.append((fold, is_open))
        found.add_later(fold, lambda t=timing, n=name, h=holds, o=is_open, i=inside: _span_row(shown, t, n, h, o, i))  # type: ignore[misc]
    if hidden:
        words = f"{counted(hidden, 'span')} of less than {seconds_words(least)} left out: H lists them"
        found.add(Row(("hidden",), fixed([(f"  {words}", "dim")])))


def _span_row(
    shown: _Shown, timing: Timing, name: _Name, holds: bool, is_open: bool, inside: tuple[Hashable, ...]
) -> Row:
    span, run = timing.span, shown.run
    frame = run.frames.get(span.frame) if span.name in _FRAMES else None
    kernel = shown.kernels.get(span.what)
    mark = sign(is_open=is_open) if holds else VERDICT_SIGNS["waiting"] if timing.lasts else " "
    words = [(f"{' ' * min(INDENT * timing.depth, 40)}{mark} ", "accent" if timing.lasts else "")]
    words.append((span_words(span, frame), "strong" if timing.lasts or frame is not None else ""))
    if timing.beside:
        words.append(("  beside", "dim"))
    if timing.lasts:
        words.append(("  goes on" if shown.live else "  not ended", "accent" if shown.live else "fallback"))
    share = timing.seconds / shown.total if shown.total and span.name not in times.OURS else None
    typical = shown.typical.get(name)
    cells = _cells(shown, timing.seconds, timing.own if holds else None, typical, share)
    fold = ("span", span.id)
    return Row(
        fold,
        shown.table.row(words, cells),
        "kernel" if kernel is not None else "fold" if holds else "edit" if frame is not None else "",
        fold if holds else None,
        is_open,
        inside,
        span.frame,
        frame.file if frame is not None else "",
        frame.line if frame is not None else 0,
        kernel=(kernel.frame, kernel.part, kernel.name) if kernel is not None else None,
    )


def _add_builds(found: Rows, shown: _Shown) -> None:
    """The builds of kernels, the longest first."""
    builds = times.builds(shown.timings)
    if len(builds) < 2:
        return
    fold = ("builds",)
    is_open = shown.look.is_open(fold)
    words = [
        (f"{sign(is_open=is_open)} ", ""),
        (f"{counted(len(builds), 'build')} of kernels", "strong"),
        ("  the longest first", "dim"),
    ]
    took = sum(build.seconds for build in builds)
    found.add(Row(fold, shown.table.row(words, _cells(shown, took, None, None, None)), "fold", fold, is_open))
    for build in builds if is_open else ():
        words = [(" " * 2 * INDENT, ""), (build.span.what, ""), (f"  {build.span.name}", "dim")]
        kernel = shown.kernels.get(build.span.what)
        found.add(
            Row(
                ("build", build.span.id),
                shown.table.row(words, _cells(shown, build.seconds, None, None, None)),
                "kernel" if kernel is not None else "",
                inside=(fold,),
                kernel=(kernel.frame, kernel.part, kernel.name) if kernel is not None else None,
            )
        )


def _add_against(found: Rows, shown: _Shown) -> None:
    """Against the run before it: what took longer, what less, and which of them was cold."""
    if shown.live or not shown.look.earlier:
        return
    before = shown.look.earlier[-1]
    title, *lines = report.compared(before, shown.run)
    fold = ("against",)
    is_open = shown.look.is_open(fold)
    words = [(f"{sign(is_open=is_open)} ", ""), (f"against run {before.number}", "strong"), (f"  {title}", "")]
    found.add(Row(fold, fixed(words), "fold", fold, is_open))
    for place, line in enumerate(lines if is_open else ()):
        found.add(Row(("against", place), fixed([(f"  {line}", "")]), inside=(fold,)))
    if is_open and not lines:
        found.add(Row(("against", NOTHING), fixed([("    nothing took much longer or less", "dim")]), inside=(fold,)))
