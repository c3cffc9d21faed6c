"""Which charts do benchmark rows make, as numbers, and as pictures in files? Pictures need the extra `plots`."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from statistics import quantiles
from typing import Literal

import msgspec

from idbg.bench.records import EAGER, Latency, Row
from idbg.errors import BadInput, OutputError
from idbg.reports.bench import milliseconds

SCHEMA = "idbg.bench-chart/1"
NOT_MEASURED = "not measured"
_MOST = 3.0  # times the largest value
_NAMED = 4
_DAY = 86400.0  # seconds: matplotlib counts days
Unit = Literal["ms", "s", "x"]


class Figure(msgspec.Struct, frozen=True):
    """A bar, or, with `at`, a point of the line `name`; None was not measured. Nine of ten samples are from `low` to
    `high`."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    at: float | None = None


class Chart(msgspec.Struct, frozen=True):
    """`name` is that of its files. Without figures `empty` says what would give some."""

    name: str
    title: str
    unit: Unit
    figures: tuple[Figure, ...]
    empty: str

    @property
    def over_time(self) -> bool:
        return any(figure.at is not None for figure in self.figures)

    @property
    def reach(self) -> float:
        """How far its axis goes: to the end of the longest spread, unless the values could not be told apart then."""
        longest = max([one.value or 0.0 for one in self.figures], default=0.0) or 1.0
        return min(max([longest, *(one.high or 0.0 for one in self.figures)]), _MOST * longest)

    @property
    def beyond(self) -> str:
        """Whose spread goes further than the axis, and how far."""
        far = [f"{one.name} {said(one.high, self.unit)}" for one in self.figures if (one.high or 0.0) > self.reach]
        more = f" and {len(far) - _NAMED} more" if len(far) > _NAMED else ""
        return f"p95 beyond the chart: {', '.join(far[:_NAMED])}{more}" if far else ""


# ---------------------------------------------------------------- what they show


def latency(rows: Iterable[Row]) -> Chart:
    found = [Figure(row.backend, *_spread(row.latency_ms)) for row in rows]
    title = "Latency: the median, and between which nine of ten samples lie"
    return Chart("latency", title, "ms", tuple(found), "nothing was measured yet")


def speedup(rows: Iterable[Row]) -> Chart:
    found = [Figure(row.backend, row.speedup) for row in rows if row.backend != EAGER]
    title = "Speed-up: eager's median latency over the backend's"
    return Chart("speed-up", title, "x", tuple(found), "only eager was measured, or nothing")


def compile_time(rows: Iterable[Row]) -> Chart:
    found = [
        Figure(f"{row.backend} {how}", seconds)
        for row in rows
        if row.backend != EAGER
        for how, seconds in (("cold", row.cold_compile_s), ("warm", row.warm_compile_s))
    ]
    title = "Compile time: to the first result, with empty caches (cold) and with filled ones (warm)"
    return Chart("compile-time", title, "s", tuple(found), "only eager was measured, or nothing")


def phases(seconds: Mapping[str, float], run: str) -> Chart:
    """The longest first. `run` names the run that they are of."""
    longest = sorted(seconds.items(), key=lambda one: -one[1])
    title = f"Compile phases of {run}: they nest, so they do not add up"
    return Chart("phases", title, "s", tuple(Figure(*one) for one in longest), "no run has told its phases yet")


def history(rows: Iterable[Row]) -> Chart:
    """A line for each backend on each machine and of each size."""
    good = [row for row in rows if row.latency_ms]
    hosts = len({row.machine.host for row in good if row.machine}) > 1
    found = [Figure(_line(row, hosts), *_spread(row.latency_ms), at=row.at) for row in good]
    found.sort(key=lambda figure: (figure.name, figure.at))
    title = "History: the median latency of each measurement, by date"
    return Chart("history", title, "ms", tuple(found), "no earlier measurement of this program is in the database")


def _spread(found: Latency | None) -> tuple[float | None, float | None, float | None]:
    if found is None:
        return None, None, None
    low = quantiles(found.samples, n=20, method="inclusive")[0] if len(found.samples) > 1 else found.median
    return found.median, low, found.p95


def _line(row: Row, hosts: bool) -> str:
    batch = f"batch {row.batch}" if row.batch else ""
    host = row.machine.host if hosts and row.machine else ""
    return " ".join(part for part in (row.backend, row.device, row.dtype, batch, host) if part)


# ---------------------------------------------------------------- their numbers


def table(chart: Chart) -> tuple[tuple[str, ...], list[tuple[str | float | None, ...]]]:
    """The names of the columns, then a row for each figure."""
    spread = any(figure.low is not None for figure in chart.figures)
    heads = ("measured", *(("at",) * chart.over_time), _head(chart))
    rows: list[tuple[str | float | None, ...]] = []
    for one in chart.figures:
        when = (date(one.at).isoformat(sep=" ", timespec="seconds"),) if one.at is not None else ()
        rows.append((one.name, *when, one.value, *((one.low, one.high) if spread else ())))
    return (*heads, *(("p5", "p95") if spread else ())), rows


def _head(chart: Chart) -> str:
    return {"ms": "median ms", "s": "seconds", "x": "times eager"}[chart.unit]


def to_csv(chart: Chart) -> str:
    """A line for each figure; what was not measured is empty."""
    out = io.StringIO()
    heads, rows = table(chart)
    csv.writer(out, lineterminator="\n").writerows([heads, *rows])
    return out.getvalue()


def to_json(chart: Chart) -> str:
    """Strict JSON; what was not measured is null."""
    found = {"schema": SCHEMA, "chart": chart.name, "title": chart.title, "unit": chart.unit, "figures": chart.figures}
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def said(value: float | None, unit: Unit) -> str:
    """A figure with its unit, in three digits."""
    if value is None:
        return NOT_MEASURED
    if unit == "x":
        return f"{value:.2f} x"
    return milliseconds(value if unit == "ms" else 1e3 * value)


def date(at: float) -> datetime:
    """Here, by the clock of this machine."""
    return datetime.fromtimestamp(at)


# ---------------------------------------------------------------- files


def write(chart: Chart, folder: Path) -> Iterator[Path]:
    """Write the numbers as CSV and JSON, then the picture, and give each path once it is written.

    Raises OutputError where the disk refuses, BadInput without matplotlib.
    """
    for suffix, text in ((".csv", to_csv(chart)), (".json", to_json(chart))):
        path = folder / f"bench-{chart.name}{suffix}"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritten(path, error) from error
        yield path
    path = folder / f"bench-{chart.name}.png"
    save(chart, path)
    yield path


def save(chart: Chart, path: Path) -> None:
    """Draw the chart as a PNG. Raises BadInput without matplotlib, OutputError if it cannot be written."""
    try:
        from matplotlib.figure import Figure as Picture
    except ImportError as error:
        raise BadInput("pictures need matplotlib", hint='install it: pip install "idbg[plots]"') from error
    measured = [(one, one.value or 0.0) for one in chart.figures if one.value is not None or not chart.over_time]
    bars = 1.5 if chart.over_time else 0.4
    picture = Picture(figsize=(9, min(max(2.5, 1.0 + bars * len(measured)), 6)), layout="constrained")
    axes = picture.add_subplot()
    axes.set_title(chart.title, fontsize=10)
    if chart.over_time:
        for name, line in groupby(measured, key=lambda one: one[0].name):
            points = list(line)
            axes.errorbar(
                [(one.at or 0.0) / _DAY for one, _ in points],
                [value for _, value in points],
                yerr=_errors(points),
                label=name,
                marker="o",
                capsize=3,
            )
        axes.set_ylabel(_head(chart))
        axes.set_ylim(0, 1.04 * chart.reach)
        axes.set_xlabel(chart.beyond)
        axes.legend()
        axes.xaxis_date(datetime.now().astimezone().tzinfo)
        picture.autofmt_xdate()
    else:
        names = [f"{one.name}  {said(one.value, chart.unit)}" for one, _ in measured]
        errors = _errors(measured) if any(one.low is not None for one, _ in measured) else None
        axes.barh(names, [value for _, value in measured], xerr=errors, height=0.6, capsize=3)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.04 * chart.reach)
        axes.set_xlabel(f"{_head(chart)}   {chart.beyond}")
    try:
        picture.savefig(path, dpi=120)
    except OSError as error:
        raise _unwritten(path, error) from error


def _errors(measured: Sequence[tuple[Figure, float]]) -> list[list[float]]:
    """Down to `low` and up to `high`, as matplotlib has them."""
    return [
        [value - (value if one.low is None else one.low) for one, value in measured],
        [(value if one.high is None else one.high) - value for one, value in measured],
    ]


def _unwritten(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write {path}: {error.strerror or error}", hint="make room, or give another folder with --output"
    )
