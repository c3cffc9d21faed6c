"""Show where the time of a compile went: what dominated, what helps, by use, span by span, and beside earlier runs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from idbg.analysis.decisions import times
from idbg.analysis.decisions.frames import spoken
from idbg.analysis.decisions.times import Spent, Timing, Use
from idbg.format.amounts import counted, seconds, share
from idbg.format.file_names import near_place
from idbg.schema.code import Kernel
from idbg.schema.decisions.inductor import Span
from idbg.schema.graphs import Frame
from idbg.schema.runs import Run
from idbg.schema.strict_json import picked
from idbg.views.earlier_times import HEATS, LEAST, USES, Name, compared, named, past, total_before, typical
from idbg.views.time_help import helps
from idbg.views.tree import (
    NO_OPTIONS,
    NO_REFS,
    Cell,
    Chart,
    Column,
    Options,
    Refs,
    Row,
    Section,
    Table,
    kernel_refs,
    words,
)

TITLE = "Compile time"
_AGAIN = 0.2  # of the time: recompiles that took less are left to the section on recompiles
_MANY = 300  # spans from which frames are folded at first
_FRAMES = ("frame", "frame compile", "backward")
_COLORS: dict[Use, str] = {
    **dict.fromkeys(("dynamo", "guards"), "f3"),
    "aot": "f4",
    "passes": "f5",
    **dict.fromkeys(("lowering", "scheduling"), "f7"),
    "codegen": "f2",
    **dict.fromkeys(("cpp", "cpu check", "triton"), "f1"),
    "autotuning": "f6",
}


@dataclass(frozen=True)
class _Shown:
    """What every row needs."""

    run: Run
    options: Options
    timings: Sequence[Timing]
    total: float
    typical: dict[Name, float]

    @property
    def live(self) -> bool:
        return self.options.now is not None

    @property
    def least(self) -> float:
        return 0.0 if self.options.everything else LEAST * self.total


def color(use: Use) -> str:
    """The name of the colour of what time was spent on."""
    return _COLORS.get(use, "f0")


def count(run: Run) -> int:
    """Spans are not counted: each compile has hundreds."""
    return 0


def view(run: Run, options: Options = NO_OPTIONS) -> Section:
    """What dominated and what helps; by use, span by span, builds, beside the run before; `order` 1: the picture."""
    timings = times.tree(run, options.now)
    spent = times.spent(timings)
    if not timings and run.phases:
        return Section(TITLE, "spans were not recorded in this session", body=(Chart("phases", run),))
    if not spent:
        return Section(TITLE, "nothing was compiled: no compile time")
    shown = _Shown(run, options, timings, sum(each.seconds for each in spent), typical(options))
    notes = () if shown.live else tuple(dominating(run, timings))
    caption = (
        "Time goes from left to right; a box contains what it consists of; work beside the compiling thread is below."
    )
    chart = Chart("flame", (run, timings), caption)
    if options.order % 2:
        return Section(TITLE, _summary(shown, spent), body=(*notes, chart))
    rows = [_spent_row(shown, spent), *_tree(shown), *_builds(shown), *_against(shown)]
    return Section(TITLE, _summary(shown, spent), body=(*notes, chart, Table(_columns(shown), rows, "span")))


def _columns(shown: _Shown) -> tuple[Column, ...]:
    # while it goes on, what grows in every row is left out: a few rows are repainted, not all
    whole = not shown.live
    return (
        Column("", "bar", 0),
        Column("time", "seconds", 4),
        *((Column("own", "seconds", 1),) if whole else ()),
        *((Column("before", "seconds", 2),) if shown.typical else ()),
        *((Column("share", "share", 3),) if whole else ()),
    )


def _cells(
    shown: _Shown,
    took: float | None,
    own: float | None = None,
    before: float | None = None,
    part: float | None = None,
    bar: Cell | None = None,
) -> tuple[Cell, ...]:
    optional = [(own, "dim", not shown.live), (before, "dim", bool(shown.typical)), (part, "", not shown.live)]
    return (
        bar or Cell(""),
        Cell("" if took is None else took),
        *(Cell("" if value is None else value, tone) for value, tone, is_shown in optional if is_shown),  # type: ignore[arg-type]
    )


def headline(run: Run, spent: Iterable[Spent]) -> str:
    """How long compiling took, and whether caches had the code."""
    return f"compiling took {seconds(sum(each.seconds for each in spent))}; {HEATS[times.heat(run)]}"


def _summary(shown: _Shown, spent: Iterable[Spent]) -> str:
    """The headline; of a compile that goes on the innermost span, beside how long it usually takes."""
    if not shown.live:
        return headline(shown.run, spent)
    active = [each for each in shown.timings if each.lasts and not each.beside and each.span.name not in times.OURS]
    builds = sum(each.lasts and each.beside for each in shown.timings)
    earlier = total_before(shown.options)
    whole = f", {seconds(earlier)} before" if earlier is not None else ""
    so_far = f"compiling for {seconds(shown.total)} so far{whole}"
    if not active:
        return f"{so_far}: the program runs"
    inner = active[-1]
    name = next(name for name, timing in named(shown.timings) if timing.span is inner.span)
    usual = shown.options.typical.get(inner.span.name)  # of all of that phase, in earlier sessions too
    known = f", typically {seconds(usual)} for all of it" if usual is not None else ""
    known = f", {seconds(shown.typical[name])} before" if name in shown.typical else known
    others = f", {counted(builds, 'build')} beside it" if builds else ""
    return f"{so_far}: {span_words(inner.span)} {seconds(inner.seconds)}{known}{others}"


def dominating(run: Run, timings: Sequence[Timing]) -> Iterator[Row]:
    """The largest use with what helps below it; then the recompiles' part: that is over all rows of the table."""
    spent = times.spent(timings)
    total = sum(each.seconds for each in spent)
    for largest in [each for each in spent if each.use not in ("unnamed", "other")][:1]:
        named = "the largest part" if largest is spent[0] else "the largest part that is attributed"
        part = "most of it" if largest.share > 0.5 else named
        text = f"{part}: {USES[largest.use]}: {seconds(largest.seconds)}, {share(largest.share)}"
        yield _note("largest", text, helps(run, timings, largest))
    took, compiles = times.again(timings)
    if compiles and took > _AGAIN * total:
        text = f"{counted(compiles, 'recompile')} took {seconds(took)} of it, {share(took / total)}"
        yield _note("recompiles", text, ["why: idbg analyze --type recompiles"])


def _note(key: str, text: str, lines: Iterable[str]) -> Row:
    below = [Row((key, number), words((line, "dim"))) for number, line in enumerate(lines)]
    return Row(key, words((text, "strong")), rows=below, open="all")


# ---------------------------------------------------------------- rows


def _spent_row(shown: _Shown, spent: list[Spent]) -> Row:
    """By use, with bars; while the compile goes on always in the same order."""
    if shown.live:
        uses = list(USES)
        spent.sort(key=lambda each: uses.index(each.use))
    before: dict[Use, list[float]] = {}
    for timings, _ in past(shown.options):
        for each in times.spent(timings):
            before.setdefault(each.use, []).append(each.seconds)
    below = [
        Row(
            ("spent", each.use),
            words(USES[each.use]),
            _cells(
                shown,
                each.seconds,
                None,
                median(before[each.use]) if each.use in before else None,
                each.share,
                Cell(each.share, color(each.use)),  # type: ignore[arg-type]
            ),
        )
        for each in spent
        if each.seconds >= shown.least
    ]
    cells = _cells(shown, shown.total, None, total_before(shown.options))
    return Row("spent", words(("by use", "strong")), cells, below, "all", opens="fold")


def _tree(shown: _Shown) -> Iterator[Row]:
    """Each span with those in it below; short ones are left out, and counted."""
    spans = _Spans(shown)
    yield from spans.rows(0, len(shown.timings))
    hidden = sum(timing.seconds < shown.least and not timing.lasts for timing in shown.timings)
    if hidden:
        text = f"{counted(hidden, 'span')} of less than {seconds(shown.least)} left out"
        yield Row("hidden", words((text, "dim")))


class _Spans:
    """The spans of a run as rows, made when they are unfolded."""

    def __init__(self, shown: _Shown) -> None:
        self._shown = shown
        self._named = list(named(shown.timings))
        self._kernels = {kernel.name: kernel for kernel in shown.run.kernels}
        self._folds_frames = len(shown.timings) > _MANY
        self._ends = [len(shown.timings)] * len(shown.timings)
        waiting: list[int] = []
        for place, timing in enumerate(shown.timings):
            while waiting and shown.timings[waiting[-1]].depth >= timing.depth:
                self._ends[waiting.pop()] = place
            waiting.append(place)

    def rows(self, place: int, end: int) -> list[Row]:
        """The outermost ones between two places."""
        found = []
        while place < end:
            timing = self._shown.timings[place]
            if timing.seconds >= self._shown.least or timing.lasts:
                found.append(self._row(place))
            place = self._ends[place]
        return found

    def _row(self, place: int) -> Row:
        (name, timing), shown = self._named[place], self._shown
        span, run = timing.span, shown.run
        frame = run.frames.get(span.frame) if span.name in _FRAMES else None
        kernel = self._kernels.get(span.what)
        holds = self._holds(place)
        lasts = ("  in progress" if shown.live else "  not ended") if timing.lasts else ""
        strong = "strong" if timing.lasts or frame is not None else ""
        part = timing.seconds / shown.total if shown.total and span.name not in times.OURS else None
        return Row(
            ("span", span.id),
            words(
                (span_words(span, frame), strong),  # type: ignore[arg-type]
                ("  beside" if timing.beside else "", "dim"),
                (lasts, "accent" if shown.live else "fallback"),
            ),
            _cells(shown, timing.seconds, timing.own if holds else None, shown.typical.get(name), part),
            (lambda: self.rows(place + 1, self._ends[place])) if holds else (),
            "" if self._folds_frames and span.name in _FRAMES else "all",
            Refs(file=frame.file, line=frame.line, frame=span.frame) if frame else _of_kernel(kernel, span.frame),
            "kernel" if kernel is not None else "fold" if holds else "edit" if frame is not None else "",
        )

    def _holds(self, place: int) -> bool:
        """Whether rows are listed below it."""
        within = range(place + 1, self._ends[place])
        timings, least = self._shown.timings, self._shown.least
        return any(timings[at].seconds >= least or timings[at].lasts for at in within)


def _of_kernel(kernel: Kernel | None, frame: str = "") -> Refs:
    return Refs(kernel=kernel_refs(kernel), frame=frame) if kernel else Refs(frame=frame) if frame else NO_REFS


def _builds(shown: _Shown) -> Iterator[Row]:
    """The builds of kernels, the longest first."""
    builds = times.builds(shown.timings)
    if len(builds) < 2:
        return
    kernels = {kernel.name: kernel for kernel in shown.run.kernels}
    at_once = 1 + max(lane for _, lane in times.lanes(builds))
    below = [
        Row(
            ("build", build.span.id),
            words(build.span.what, (f"  {build.span.name}", "dim")),
            _cells(shown, build.seconds),
            refs=_of_kernel(kernels.get(build.span.what)),
            opens="kernel" if build.span.what in kernels else "",
        )
        for build in builds
    ]
    text = f"  the longest first, at most {at_once} at a time"
    head = words((f"{counted(len(builds), 'build')} of kernels", "strong"), (text, "dim"))
    yield Row("builds", head, _cells(shown, sum(build.seconds for build in builds)), below, "text", opens="fold")


def _against(shown: _Shown) -> Iterator[Row]:
    """Against the run before: what took longer, what less."""
    if shown.live or not shown.options.earlier:
        return
    before = shown.options.earlier[-1]
    title, *lines = compared(before, shown.run)
    below = [Row(("against", number), words(line.strip())) for number, line in enumerate(lines)]
    below = below or [Row(("against", "none"), words(("no use changed much", "dim")))]
    head = words((f"against run {before.number}", "strong"), f"  {title}")
    yield Row("against", head, rows=below, opens="fold")


def span_words(span: Span, frame: Frame | None = None) -> str:
    """A span by its name and what it is of; a frame's with its function and place."""
    text = f"{span.name} {span.what}" if span.what else span.name
    if span.times > 1:
        text += f" x{span.times:,}"
    if span.nodes is not None and span.nodes[0] != span.nodes[1]:
        text += f", {span.nodes[0]:,} to {span.nodes[1]:,} nodes"
    elif span.nodes is not None:
        text += f", {counted(span.nodes[0], 'node')}"
    return f"{text}   {spoken(frame)} {near_place(frame.file, frame.line)}".rstrip() if frame else text


def as_json(run: Run) -> object:
    """Seconds of each use, by name, and each span in order; `explained`: the share of the time that is attributed."""
    timings = times.tree(run)
    spent = times.spent(timings)
    return {
        "seconds": sum(each.seconds for each in spent),
        "explained": explained(spent),
        "heat": times.heat(run),
        "dominating": [
            line for row in dominating(run, timings) for line in (row.text, *(each.text for each in row.below))
        ],
        "spent": [picked(each, "use seconds share") for each in spent],
        "by_name": times.by_name(timings),
        "builds": [
            {"kernel": each.span.what, "compiler": each.span.name, "seconds": each.seconds, "ended": not each.lasts}
            for each in times.builds(timings)
        ],
        "phases": run.phases,
        "spans": [
            {"span": each.span.facts(), **picked(each, "depth own seconds"), "ended": not each.lasts}
            for each in timings
        ],
    }


def explained(spent: Iterable[Spent]) -> float | None:
    """The share of the compiles' time that is attributed; None where nothing was compiled."""
    shares = {each.use: each.share for each in spent}
    return 1 - shares.get("unnamed", 0.0) if shares else None
