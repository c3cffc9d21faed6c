"""Make the charts of benchmark rows, kernels, phases and memory, as numbers."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import quantiles
from typing import Literal

import msgspec

from idbg.format.amounts import NOT_MEASURED, duration, few
from idbg.schema import strict_json
from idbg.schema.bench import EAGER, Latency, Row
from idbg.schema.events import KernelsTimed
from idbg.schema.graphs import Graph
from idbg.views.kernel_times import doubts

SCHEMA = "idbg.bench-chart/1"
_MOST = 3.0  # times the largest value
_NAMED = 4
Unit = Literal["ms", "s", "x", "GFLOP/s", "MiB"]
Axis = Literal["", "date", "node", "FLOPs/byte"]
TOP = 12  # kernels that have a bar of their own


class Figure(msgspec.Struct, frozen=True):
    """A bar, or, with `at`, a point: of the line `name` over dates, of the graph's node `name`, or of the kernel `name`
    over its FLOPs a byte. None was not measured. Nine of ten samples are from `low` to `high`.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    at: float | None = None


class Chart(msgspec.Struct, frozen=True):
    """`name` is that of its files; `axis` is what `at` is. Without figures `empty` says what would give some.

    `roof`: the machine's peaks, in GB/s and GFLOP/s.
    """

    name: str
    title: str
    unit: Unit
    figures: tuple[Figure, ...]
    empty: str
    axis: Axis = ""
    roof: tuple[float, float] | None = None

    @property
    def over_time(self) -> bool:
        """Whether its figures stand at dates, as seconds since the epoch."""
        return self.axis == "date"

    @property
    def reach(self) -> float:
        """How far its axis goes: to the end of the longest spread, unless that would squeeze the values."""
        longest = max([one.value or 0.0 for one in self.figures], default=0.0) or 1.0
        return min(max([longest, *(one.high or 0.0 for one in self.figures)]), _MOST * longest)

    @property
    def beyond(self) -> str:
        """A sentence that names the figures whose spread goes further than the axis; "" where none does."""
        far = [
            f"{one.name} {value_words(one.high, self.unit)}" for one in self.figures if (one.high or 0.0) > self.reach
        ]
        return f"p95 beyond the chart: {few(far, _NAMED, ' and {:,} more')}" if far else ""


# ---------------------------------------------------------------- what they show


def latency(rows: Iterable[Row]) -> Chart:
    """A bar in milliseconds for each row, with the spread of its samples."""
    found = list(rows)
    bars = [Figure(row.backend, *_spread(row.latency_ms)) for row in found]
    title = f"Latency: the median, and between which nine of ten samples lie{_caveats(found)}"
    return Chart("latency", title, "ms", tuple(bars), "nothing was measured yet")


def speedup(rows: Iterable[Row]) -> Chart:
    """A bar for each row but eager's, which has none over itself."""
    found = list(rows)
    bars = [Figure(row.backend, row.speedup) for row in found if row.backend != EAGER]
    title = f"Speed-up: eager's median latency over the backend's{_caveats(found)}"
    return Chart("speed-up", title, "x", tuple(bars), "only eager was measured, or nothing")


def compile_time(rows: Iterable[Row]) -> Chart:
    """Two bars in seconds for each row but eager's, cold and warm."""
    bars = [
        Figure(f"{row.backend} {how}", seconds)
        for row in rows
        if row.backend != EAGER
        for how, seconds in (("cold", row.cold_compile_s), ("warm", row.warm_compile_s))
    ]
    title = "Compile time: to the first result, with empty caches (cold) and with filled ones (warm)"
    return Chart("compile-time", title, "s", tuple(bars), "only eager was measured, or nothing")


def phases(seconds: Mapping[str, float], run: str) -> Chart:
    """A bar in seconds for each compile phase of the run that `run` names, the longest first."""
    longest = sorted(seconds.items(), key=lambda one: -one[1])
    title = f"Compile phases of {run}: they nest, so they do not add up"
    return Chart("phases", title, "s", tuple(Figure(*one) for one in longest), "no run has recorded phases yet")


def history(rows: Iterable[Row]) -> Chart:
    """A line of median latencies over dates, for each backend on each machine and of each size."""
    good = [row for row in rows if row.latency_ms]
    hosts = len({row.machine.host for row in good if row.machine}) > 1
    points = [Figure(_line(row, hosts), *_spread(row.latency_ms), at=row.at) for row in good]
    points.sort(key=lambda figure: (figure.name, figure.at))
    title = "History: the median latency of each measurement, by date"
    empty = "no earlier measurement of this program is in the database"
    return Chart("history", title, "ms", tuple(points), empty, "date")


def kernels(timed: KernelsTimed | None) -> Chart:
    """A bar in milliseconds a call for each of the longest kernels, one for all others, and one for what no kernel
    takes.
    """
    times = timed.times if timed else None
    empty = "no kernel was timed yet"
    if timed is None or times is None:
        return Chart("kernels", "Time by kernel", "ms", (), empty)
    longest = times.by_time
    bars = [Figure(one.handle or one.name, one.run_us / 1e3) for one in longest[:TOP]]
    if rest := longest[TOP:]:
        bars.append(Figure(f"{len(rest)} others", sum(one.run_us for one in rest) / 1e3))
    bars.append(Figure("no kernel: Python, gaps", max(times.missed_us, 0.0) / 1e3))
    title = f"Time by kernel of {timed.backend}: of a call's {duration(times.total_us / 1e3)}"
    return Chart("kernels", title, "ms", tuple(bars), empty)


def roofline(timed: KernelsTimed | None) -> Chart:
    """The kernels whose FLOPs are counted, under the machine's measured peaks for their dtype."""
    times = timed.times if timed else None
    counted = [one for one in (times.kernels if times else ()) if one.flops and one.bytes]
    figures = tuple(
        Figure(one.handle or one.name, (one.flops_per_s or 0.0) / 1e9, at=(one.flops or 0) / (one.bytes or 1))
        for one in counted
    )
    known = [(one.peak_bytes_per_s, one.peak_flops_per_s) for one in counted]
    roofs = [(memory / 1e9, compute / 1e9) for memory, compute in known if memory and compute]
    title = "Roofline: FLOP/s over FLOPs a byte, under a copy's and a matmul's measured speed"
    title += "".join(f"; {doubt}" for doubt in doubts(times)) if times else ""
    empty = "no kernel with counted FLOPs (products, convolutions, attention) was timed"
    return Chart("roofline", title, "GFLOP/s", figures, empty, "FLOPs/byte", max(roofs, default=None))


def memory(graph: Graph | None, live_bytes: Sequence[int]) -> Chart:
    """A point in MiB for each node of the graph: what is in use while it runs."""
    nodes = graph.nodes if graph else ()
    figures = [
        Figure(node.name, used / 2**20, at=float(place))
        for place, (node, used) in enumerate(zip(nodes, live_bytes, strict=False))
    ]
    title = f"Memory over the graph {graph.id if graph else ''}: in use while each node runs, by shapes"
    return Chart("memory", title, "MiB", tuple(figures), "no graph is shown, or its memory is not counted yet", "node")


def _spread(latency: Latency | None) -> tuple[float | None, float | None, float | None]:
    if latency is None:
        return None, None, None
    low = quantiles(latency.samples, n=20, method="inclusive")[0] if len(latency.samples) > 1 else latency.median
    return latency.median, low, latency.p95


def _caveats(rows: Iterable[Row]) -> str:
    return "".join(f"; {row.backend}: {', '.join(row.caveats)}" for row in rows if row.caveats)


def _line(row: Row, hosts: bool) -> str:
    batch = f"batch {row.batch}" if row.batch else ""
    host = row.machine.host if hosts and row.machine else ""
    return " ".join(part for part in (row.backend, row.device, row.dtype, batch, host) if part)


# ---------------------------------------------------------------- their numbers


def table(chart: Chart) -> tuple[tuple[str, ...], list[tuple[str | float | None, ...]]]:
    """The names of the columns, then a row for each figure."""
    spread = any(figure.low is not None for figure in chart.figures)
    heads = ("measured", *({"": (), "date": ("at",)}.get(chart.axis, (chart.axis,))), _head(chart))
    rows: list[tuple[str | float | None, ...]] = []
    for one in chart.figures:
        when: tuple[str | float, ...] = () if one.at is None else (one.at,)
        if chart.over_time and one.at is not None:
            when = (date(one.at).isoformat(sep=" ", timespec="seconds"),)
        rows.append((one.name, *when, one.value, *((one.low, one.high) if spread else ())))
    return (*heads, *(("p5", "p95") if spread else ())), rows


def _head(chart: Chart) -> str:
    return {"ms": "median ms", "s": "seconds", "x": "times eager"}.get(chart.unit, chart.unit)


def to_csv(chart: Chart) -> str:
    """A line for each figure; what was not measured is empty."""
    out = io.StringIO()
    heads, rows = table(chart)
    csv.writer(out, lineterminator="\n").writerows([heads, *rows])
    return out.getvalue()


def to_json(chart: Chart) -> str:
    """Strict JSON; what was not measured is null."""
    plain = {"schema": SCHEMA, "chart": chart.name, "title": chart.title, "unit": chart.unit, "figures": chart.figures}
    return strict_json.formatted(plain).decode()


def value_words(value: float | None, unit: Unit) -> str:
    """A figure with its unit, in three digits."""
    if value is None:
        return NOT_MEASURED
    if unit == "x":
        return f"{value:.2f} x"
    if unit in ("GFLOP/s", "MiB"):
        return f"{value:,.4g} {unit}"
    return duration(value if unit == "ms" else 1e3 * value)


def date(at: float) -> datetime:
    """The seconds since the epoch as a date of this machine's time zone."""
    return datetime.fromtimestamp(at)


def roof_line(chart: Chart) -> list[tuple[float, float]]:
    """The corners of the roof over the points, in FLOPs a byte and GFLOP/s: along a copy's speed, then a matmul's."""
    if chart.roof is None:
        return []
    memory, compute = chart.roof
    places = [one.at or 1.0 for one in chart.figures]
    ridge = compute / memory
    first, last = min(*places, ridge) / 2, max(*places, ridge) * 2
    return [(first, first * memory), (ridge, compute), (last, compute)]
