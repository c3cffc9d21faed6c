"""How does the time of each kernel read: in a list, and beside its node and its source?"""

from collections.abc import Iterator
from dataclasses import dataclass

from idbg.format.amounts import column_share, counted, duration, share
from idbg.format.bounds import bound_words
from idbg.format.glyphs import plain
from idbg.reports.kernels import BOUNDS, doubts
from idbg.schema.events import KernelsTimed
from idbg.schema.kernel_times import Bound, KernelTime, KernelTimes
from idbg_tui.widgets import lines
from idbg_tui.widgets.cutting import told_apart
from idbg_tui.widgets.lines import clip, fit

_LEAST = 14  # cells of a name
_NOTICED = 0.01  # of a sum: by so much rows may miss it without a word
_COLUMNS = (("median", 9), ("share", 7), ("launches", 8), ("of copy", 8), ("of matmul", 9), ("bound", 13))
_GOES_FIRST = ("launches", "of matmul", "of copy", "bound")
_STYLES: dict[Bound, str] = {"memory": "accent", "compute": "clean", "launch": "fallback", "unknown": "dim"}


@dataclass(frozen=True)
class KernelHeads:
    """The names of the columns of the kernels."""


KernelItem = KernelHeads | KernelTime


def items(times: KernelTimes) -> list[KernelItem]:
    """The longest first."""
    return [KernelHeads(), *times.by_time]


def said(timed: KernelsTimed) -> Iterator[tuple[str, str]]:
    """What is said of all kernels: sentences, each with its style."""
    times = timed.times
    if times is None:
        why = timed.failure.message.partition("\n")[0] if timed.failure else "nothing was measured"
        yield f"the kernels of {timed.backend} were not timed", "reject"
        yield f"  {why}", "reject"
        return
    call = "training step" if times.kind == "training" else "forward"
    whole = f"{_us(times.sum_us)} of a {call}'s {_us(times.total_us)}"
    yield f"{counted(len(times.kernels), 'kernel')} of {timed.backend}: {whole}, {counted(times.runs, 'run')}", "strong"
    missed = times.missed_us
    if missed >= 0:
        yield f"the rest, {_us(missed)}, is Python, allocations and gaps; timing each took {_part(times)}", "dim"
    rows_us = sum(one.run_us for one in times.kernels)
    if abs(rows_us - times.sum_us) > _NOTICED * times.sum_us:
        yield f"the medians of the rows add up to {_us(rows_us)}: not every kernel was slow in the same runs", "dim"
    for doubt in doubts(times):
        yield doubt, "fallback"
    if times.problem:
        yield f"some kernels are missing: {times.problem}", "fallback"


def _part(times: KernelTimes) -> str:
    return f"{share(max(times.perturbation, 0))} more"


def heads(times: KernelTimes, width: int) -> lines.StyledRow:
    """The names of those columns of the kernels' table that have room in `width` cells."""
    name, shown = _columns(times, width)
    words = "".join(f"  {head:>{cells}}" for head, cells in shown)
    return [(clip(f"   {fit('kernel', name)}{words}", width), "dim")]


def row(one: KernelTime, times: KernelTimes, width: int) -> lines.StyledRow:
    name, shown = _columns(times, width)
    named = told_apart([_called(each) for each in times.kernels], name)
    figures = _figures(one)
    styles = {"bound": _STYLES[one.bound]}
    cells = [(f"  {figures[head]:>{width}}", styles.get(head, "")) for head, width in shown]
    return [(f"   {fit(named[_called(one)], name)}", "strong"), *cells]


def _called(one: KernelTime) -> str:
    return one.handle or one.name


def _columns(times: KernelTimes, width: int) -> tuple[int, list[tuple[str, int]]]:
    wanted = max(_LEAST, *(len(_called(one)) for one in times.kernels))
    shown = list(_COLUMNS)
    for head in _GOES_FIRST:
        if 3 + _LEAST + sum(cells + 2 for _, cells in shown) <= width:
            break
        shown = [one for one in shown if one[0] != head]
    room = width - 3 - sum(cells + 2 for _, cells in shown)
    return max(_LEAST, min(wanted, room)), shown


def _figures(one: KernelTime) -> dict[str, str]:
    return {
        "median": _us(one.median_us),
        "share": column_share(one.share),
        "launches": f"{one.launches:,.4g}",
        "of copy": column_share(one.of_memory),
        "of matmul": column_share(one.of_compute),
        "bound": BOUNDS[one.bound],
    }


def _us(microseconds: float) -> str:
    return plain(duration(microseconds / 1e3))


def mark(times: list[KernelTime]) -> str:
    """The time of a node's kernels in a graph's row: "12µs", "1.2ms"; "" where none was timed."""
    return _us(sum(one.median_us for one in times)).replace(" ", "") if times else ""


def sum_words(times: list[KernelTime]) -> str:
    """Of several launches: "96.1 µs, 23 % of a call"."""
    return f"{_us(sum(one.run_us for one in times))}, {share(sum(one.share for one in times))} of a call"


def words(one: KernelTime) -> str:
    """Beside the node and the source: "12.3 µs, 31 % of a call; memory-bound: 82 % of a copy's bandwidth"."""
    return f"{_us(one.median_us)}, {share(one.share)} of a call; {bound_words(one)}"
