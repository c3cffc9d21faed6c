"""What does compiling buy, with how much noise, and where does the time of a call go?"""

from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from idbg.format.amounts import NOT_MEASURED
from idbg.render.html.templating import fill
from idbg.reports import bench as told_bench
from idbg.reports import bench_plots, bench_row, kernels
from idbg.reports.again import ask
from idbg.reports.bench_plots import Chart
from idbg.reports.documents import Told
from idbg.reports.drawings import of_bench
from idbg.schema.bench import Row
from idbg.schema.events import KernelsTimed
from idbg.schema.runs import History

TITLE = "Benchmarks"
ANCHOR = "benchmarks"
OVER_TIME = 2  # measurements of one row, of which a line over time is drawn


@dataclass(frozen=True)
class Drawn:
    """A chart, its picture (None where it has no figures), and what lies beyond it."""

    chart: Chart
    picture: Markup | None


@dataclass(frozen=True)
class ProgramTold:
    """The rows of one program, each as the table has it, and what they make as pictures."""

    name: str
    how: str
    rows: list[Row]
    cells: list[tuple[str, ...]]
    doubts: list[str]
    charts: list[Drawn]
    figures: list[tuple[Row, list[tuple[str, str]]]]


def section(told: Told) -> Markup:
    """The rows by program with their charts; the kernels' times; which command measures, where nothing was."""
    return filled(told.history)


def filled(history: History) -> Markup:
    """What was measured in this session."""
    return fill(
        "bench.html",
        programs=programs(history.rows),
        kernels=timed(history.kernels) if history.kernels else None,
        verdict=told_bench.verdict(history.rows),
        measuring=history.rows_left,
        ask=ask("bench", history.last),
        ask_kernels=ask("bench", history.last, "--kernels"),
        heads=told_bench.HEADS,
    )


def programs(rows: list[Row]) -> list[ProgramTold]:
    """The rows of each program that stand beside one another."""
    return [_program(name, list(own)) for name, own in groupby(rows, key=lambda row: row.program)]


def _program(name: str, rows: list[Row]) -> ProgramTold:
    last = told_bench.latest(rows)
    charts = [
        Drawn(chart := bench_plots.latency(last), of_bench.chart(chart, [_samples(row) for row in last])),
        *(Drawn(chart, of_bench.chart(chart)) for chart in (bench_plots.speedup(last), bench_plots.compile_time(last))),
    ]
    if len(rows) >= OVER_TIME * len(last):
        charts.append(Drawn(chart := bench_plots.history(rows), of_bench.chart(chart)))
    return ProgramTold(
        name=name,
        how=told_bench.how(rows),
        rows=rows,
        cells=[told_bench.cells(row) for row in rows],
        doubts=[line.strip() for line in told_bench.doubts(rows)],
        charts=[each for each in charts if each.picture is not None],
        figures=[(row, figures(row)) for row in rows],
    )


def figures(row: Row) -> list[tuple[str, str]]:
    """Every figure of a row with its label, and where it was measured."""
    told = list(bench_row.figures(row))
    if row.latency_ms:
        told.append(("samples", bench_row.samples_words(row.latency_ms)))
    return [*told, *bench_row.machine(row)]


def _samples(row: Row) -> tuple[float, ...]:
    return row.latency_ms.samples if row.latency_ms else ()


@dataclass(frozen=True)
class KernelsTold:
    """What each kernel takes, or why that is not known."""

    name: str
    problem: str
    lines: list[str]
    charts: list[Drawn]


def timed(event: KernelsTimed) -> KernelsTold:
    """The last times of kernels that the session has."""
    name = f"{event.program} on {event.backend}"
    if event.times is None:
        why = event.failure.message if event.failure else "no reason is known"
        return KernelsTold(name, f"{NOT_MEASURED}: {why}", [], [])
    wanted = bench_plots.kernels(event), bench_plots.roofline(event)
    charts = [Drawn(chart, of_bench.chart(chart)) for chart in wanted]
    lines = kernels.report(event.times, name).splitlines()
    return KernelsTold(name, "", lines, [each for each in charts if each.picture is not None])
