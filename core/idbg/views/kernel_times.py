"""Show how long each kernel of a program takes, and what bounds it."""

from collections.abc import Iterator, Sequence

import msgspec

from idbg.format.amounts import counted, duration, share
from idbg.format.glyphs import MARKS
from idbg.format.kernels import bound_words
from idbg.schema.events import KernelsTimed
from idbg.schema.kernel_times import BEYOND, Bound, KernelTime, KernelTimes, Peaks
from idbg.views.tree import Cell, Column, Refs, Row, Section, Table, Tone, words

TITLE = "Kernel times"
SLOW = "Slow kernels"
SCHEMA = "idbg.kernels/1"
TRUSTED = 0.1  # of the processors, that others used while the peaks were measured
_NOTICED = 0.01  # of a sum: by so much rows may miss it without a word
BOUNDS: dict[Bound, str] = {
    "memory": "memory-bound",
    "compute": "compute-bound",
    "launch": "launch-bound",
    "unknown": "not known",
}
_TONES: dict[Bound, Tone] = {"memory": "accent", "compute": "clean", "launch": "fallback", "unknown": "dim"}
COLUMNS = (
    Column("median", "seconds", 8),
    Column("sum", "seconds", 6),
    Column("share", "share", 7),
    Column("launches", "count", 3),
    Column("GB/s", "count", 2),
    Column("of copy", "share", 5),
    Column("GFLOP/s", "count", 1),
    Column("of matmul", "share", 4),
    Column("bound", rank=6),
)
_DERIVED = (
    *("median_us", "p95_us", "run_us", "bytes_per_s", "flops_per_s", "of_memory", "of_compute", "of_empty"),
    "bound",
)
_TOTALS = ("runs", "total_us", "hooked_total_us", "sum_us", "missed_us", "perturbation")


def of_event(timed: KernelsTimed) -> Section:
    """The times that a session has, or why it has none."""
    if timed.times is not None:
        return view(timed.times, timed.backend)
    why = timed.failure.first_line if timed.failure else "nothing was measured"
    row = Row("failure", words((why, "reject")))
    return Section(TITLE, f"the kernels of {timed.backend} were not timed", 0, "error", (row,))


def view(times: KernelTimes, name: str = "") -> Section:
    """What all kernels take, what that misses and what is doubtful; then a row a kernel, the longest first, with its
    launches below it where the program has several.
    """
    call = "training step" if times.kind == "training" else "forward"
    took = f"{_us(times.sum_us)} of a {call}'s {_us(times.total_us)}"
    of = f" of {name}" if name else ""
    runs = counted(times.runs, "run")
    notes = [Row(("note", number), words(each)) for number, each in enumerate(_notes(times))]
    table = Table(COLUMNS, _rows(times), "kernel")
    return Section(
        TITLE, f"{counted(len(times.kernels), 'kernel')}{of}: {took}, {runs}", len(times.kernels), body=(*notes, table)
    )


def slow(times: KernelTimes) -> Section:
    """The kernels that are far from the machine's peaks and cost the program much by that: those first that could save
    the most.
    """
    found = sorted((each for each in times.kernels if each.is_slow), key=lambda each: -each.could_save)
    rows = [
        Row(
            ("slow", *key(each)[1:]),
            words((f"{MARKS['separator']} ", "dim"), (each.name, "strong"), f": {sentence(each)}"),
            refs=Refs(kernel=(each.frame, each.part, each.name)),
            rows=[Row(("could save", *key(each)[1:]), words((_could_save(each), "accent")))],
            open="all",
            opens="kernel",
        )
        for each in found
    ]
    return Section(SLOW, "", len(found), "warning" if found else "ok", (Table((), rows, "kernel"),) if rows else ())


def _could_save(kernel: KernelTime) -> str:
    return f"{MARKS['arrow']} at the machine's peak it would take up to {share(kernel.could_save)} of a call less"


def key(kernel: KernelTime) -> tuple[str, ...]:
    """This very launch."""
    return "kernel", kernel.frame, kernel.part, kernel.name, kernel.handle


def _rows(times: KernelTimes) -> list[Row]:
    of_name: dict[str, list[KernelTime]] = {}
    for kernel in times.by_time:
        of_name.setdefault(kernel.name, []).append(kernel)
    launches = sorted(of_name.values(), key=lambda each: -sum(one.run_us for one in each))
    return [_all_launches(each) if len(each) > 1 else _row(each[0]) for each in launches]


def _all_launches(kernels: Sequence[KernelTime]) -> Row:
    """All launches of one kernel; their speeds differ, as their shapes do."""
    bounds = {kernel.bound for kernel in kernels}
    sums = (
        sum(one.run_us for one in kernels) / 1e6,
        sum(one.share for one in kernels),
        sum(one.launches for one in kernels),
    )
    bound = Cell(BOUNDS[kernels[0].bound], _TONES[kernels[0].bound]) if len(bounds) == 1 else Cell("several")
    return Row(
        ("kernels", kernels[0].name),
        words((kernels[0].name, "strong"), (f"  {counted(len(kernels), 'place')}", "dim")),
        (Cell(None), *map(Cell, sums), *[Cell(None)] * 4, bound),
        rows=[_row(kernel) for kernel in kernels],
        open="text",
        opens="fold",
    )


def _row(kernel: KernelTime) -> Row:
    speeds = [None if value is None else value / 1e9 for value in (kernel.bytes_per_s, kernel.flops_per_s)]
    return Row(
        key(kernel),
        words((kernel.handle or kernel.name, "strong")),
        (
            Cell(kernel.median_us / 1e6),
            Cell(kernel.run_us / 1e6),
            Cell(kernel.share),
            Cell(kernel.launches),
            Cell(speeds[0]),
            Cell(kernel.of_memory),
            Cell(speeds[1]),
            Cell(kernel.of_compute),
            Cell(BOUNDS[kernel.bound], _TONES[kernel.bound]),
        ),
        refs=Refs(kernel=(kernel.frame, kernel.part, kernel.name)),
        opens="kernel",
    )


def _notes(times: KernelTimes) -> Iterator[tuple[str, Tone]]:
    missed = times.missed_us
    if missed >= 0:
        part = share(missed / times.total_us)
        yield f"the rest, {_us(missed)} ({part}), is Python, allocations and gaps between launches", "dim"
    else:
        yield f"their sum is {_us(-missed)} more than a call: timing each of them takes as long", "dim"
    slower = f"{'+' if times.perturbation >= 0 else '−'}{share(abs(times.perturbation))}"
    yield f"while its kernels are timed a call takes {_us(times.hooked_total_us)} ({slower})", "dim"
    rows_us = sum(one.run_us for one in times.kernels)
    if abs(rows_us - times.sum_us) > _NOTICED * times.sum_us:
        yield f"the medians of the rows add up to {_us(rows_us)}: not every kernel was slow in the same runs", "dim"
    yield _machine(times.peaks), "dim"
    if any((kernel.of_memory or 0) > BEYOND for kernel in times.kernels):
        yield "above a copy's bandwidth: the tensors were in a cache, or only parts of them were read", "dim"
    if times.untimed:
        yield f"not launched, and not timed: {', '.join(times.untimed)}", "fallback"
    for doubt in doubts(times):
        yield f"⚠ {doubt}", "fallback"
    if times.problem:
        yield f"⚠ some kernels are missing: {times.problem}", "fallback"


def _machine(peaks: Peaks) -> str:
    threads = [counted(peaks.threads, "thread")] if peaks.threads else []
    known = [f"copy {peaks.copy_bytes_per_s / 1e9:,.3g} GB/s"] if peaks.copy_bytes_per_s else []
    known += [f"{dtype} matmul {speed / 1e9:,.3g} GFLOP/s" for dtype, speed in peaks.matmul_flops_per_s.items()]
    known += [f"empty {kind} launch {_us(took)}" for kind, took in peaks.launch_us.items()]
    on = ", ".join([peaks.device, *threads, f"torch {peaks.torch}"])
    return f"{on}; peaks: {', '.join(known) or 'not measured'}"


def doubts(times: KernelTimes) -> Iterator[str]:
    """Why fractions of the machine's peaks may be too large."""
    others = times.peaks.others
    if others and others > TRUSTED:
        yield f"other processes used {share(others)} of the processors while the peaks were measured"
    beyond = [kernel for kernel in times.kernels if kernel.beyond_compute]
    if beyond:
        faster = f"{counted(len(beyond), 'kernel')} ran faster than the matmul that was measured as the peak"
        yield f"{faster}, which is too low: time them again while the machine is idle"


def short_time(times: Sequence[KernelTime]) -> str:
    """The time of a node's kernels in a graph's row: "12µs", "1.2ms"; "" where none was timed."""
    return short_time_of(sum(one.median_us for one in times) if times else None)


def short_time_of(microseconds: float | None) -> str:
    """A time in a graph's row; "" for none."""
    return _us(microseconds).replace(" ", "") if microseconds is not None else ""


def sum_words(times: Sequence[KernelTime]) -> str:
    """Of several launches: "96.1 µs, 23 % of a call"."""
    return f"{_us(sum(one.run_us for one in times))}, {share(sum(one.share for one in times))} of a call"


def sentence(kernel: KernelTime) -> str:
    """Beside the node and the source: "12.3 µs, 31 % of a call; memory-bound: 82 % of a copy's bandwidth"."""
    return f"{_us(kernel.median_us)}, {share(kernel.share)} of a call; {bound_words(kernel)}"


def _us(microseconds: float) -> str:
    return duration(microseconds / 1e3)


def as_json(times: KernelTimes) -> dict[str, object]:
    """The kernels in the order of their launches with all samples, and the figures that follow from them."""
    return {
        "schema": SCHEMA,
        **{name: getattr(times, name) for name in _TOTALS},
        **msgspec.to_builtins(times),
        "kernels": [_with_derived(kernel) for kernel in times.kernels],
    }


def _with_derived(kernel: KernelTime) -> dict[str, object]:
    return {
        **msgspec.to_builtins(kernel),
        **{name: getattr(kernel, name) for name in _DERIVED},
        "words": bound_words(kernel),
    }
