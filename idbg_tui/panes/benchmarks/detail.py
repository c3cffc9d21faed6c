"""What is known of one benchmark row? Every figure, its samples, the machine, and what was not measured."""

from collections.abc import Callable, Iterator

from idbg.format.amounts import NOT_MEASURED, counted, day, duration, share, size
from idbg.format.glyphs import plain
from idbg.reports.bench_plots import said
from idbg.schema.bench import EAGER, Latency, Row, SpeedChange
from idbg_tui.panes.benchmarks import charts, rows
from idbg_tui.panes.benchmarks.rows import BAD, DOUBT
from idbg_tui.widgets.lines import clip
from idbg_tui.widgets.listing import Entry, sentences

_LABEL = 16  # cells


def title(row: Row) -> str:
    """What was measured: the program and the backend."""
    return f"{row.program} on {row.backend}"


def entries(row: Row, change: SpeedChange | None, width: int) -> list[Entry]:
    """What is wrong or doubtful, the figures, what changed, the samples, the machine."""
    lines: list[Entry] = []
    if row.status == "failed":
        lines += sentences(f"failed: {rows.reason(row)}", width, BAD)
    elif row.diff in ("failed", "error"):
        lines += sentences(f"numbers: {rows.numbers(row)}: {rows.reason(row)}".rstrip(": "), width, BAD)
    for caveat in row.caveats:
        lines += sentences(f"doubtful: {caveat}", width, DOUBT)
    if change is not None:
        lines += sentences(rows.changed(change), width, rows.style_of(change))
    lines += [_line(label, text) for label, text in _figures(row)]
    lines += _samples(row.latency_ms, width)
    lines += sentences("", width)
    return lines + [_line(label, text) for label, text in _machine(row)]


def _line(label: str, text: str) -> Entry:
    style, words = "dim" if text.startswith(NOT_MEASURED) else "", plain(text)
    return Entry(lambda width: [(f" {label:<{_LABEL}}", "dim"), (clip(words, width - 1 - _LABEL), style)])


def _figures(row: Row) -> Iterator[tuple[str, str]]:
    what = "training step" if row.kind == "training" else "forward"
    yield "what", ", ".join(part for part in (what, row.dtype, f"batch {row.batch}" if row.batch else "") if part)
    if row.backend != EAGER:
        yield (
            "cold compile",
            _or_not(row.cold_compile_s, lambda value: f"{said(value, 's')} to the first result, no cache"),
        )
        yield "warm compile", _or_not(row.warm_compile_s, lambda value: f"{said(value, 's')} with the caches filled")
        yield "speed-up", _or_not(row.speedup, lambda value: f"{value:.3g} x eager's median")
    yield from _latency("latency", row.latency_ms)
    if row.kind == "training":
        yield from _latency("forward alone", row.forward_ms)
    yield (
        "throughput",
        _or_not(
            row.items_per_s,
            lambda value: f"{value:,.3g} items a second" if value < 100 else f"{value:,.0f} items a second",
        ),
    )
    yield "peak memory", _or_not(row.peak_bytes, lambda value: f"{size(int(value))} ({value:,} bytes)")
    if row.backend != EAGER:
        yield "graphs", _or_not(row.graphs, lambda value: f"{value:,}")
        yield "graph breaks", _or_not(row.breaks, lambda value: f"{value:,}")
        unchecked = f"{NOT_MEASURED}: this backend checks no rules" if row.graphs is not None else NOT_MEASURED
        yield "violations", unchecked if row.violations is None else f"{row.violations:,}"
        yield "numbers", rows.numbers(row) if row.diff else NOT_MEASURED


def _or_not(value: float | None, words: Callable[[float], str]) -> str:
    return NOT_MEASURED if value is None else words(value)


def _latency(label: str, latency: Latency | None) -> Iterator[tuple[str, str]]:
    if latency is None:
        yield label, NOT_MEASURED
        return
    yield label, f"median {duration(latency.median)}, p95 {duration(latency.p95)}"
    yield "", f"mean {duration(latency.mean)} ± {duration(latency.std)} (standard deviation)"
    yield "", f"from {duration(min(latency.samples))} to {duration(max(latency.samples))}"


def _samples(latency: Latency | None, width: int) -> Iterator[Entry]:
    if latency is None:
        return
    each = f"each the mean of {latency.block} calls" if latency.block > 1 else "each one call"
    how = "had settled" if latency.settled else "had not settled"
    warmup = f"after {counted(latency.warmup, 'call')} of warm-up: it {how}"
    yield from sentences("", width)
    yield from sentences(f"{counted(len(latency.samples), 'sample')}, {each}, {warmup}", width, "strong")
    for drawn in charts.histogram(latency.samples, width):
        yield Entry.fixed(drawn, picture=True)


def _machine(row: Row) -> Iterator[tuple[str, str]]:
    machine = row.machine
    yield "measured", day(row.at)
    yield "program", row.file
    yield "its hash", row.program_hash or "none: it is no file"
    if machine is None:
        yield "machine", NOT_MEASURED
        return
    yield "machine", ", ".join(part for part in (machine.host, machine.device or row.device) if part)
    yield "threads", f"{machine.threads} of {machine.processors} processors"
    busy = machine.others
    yield "others", NOT_MEASURED if busy is None else f"other processes used {share(busy)} of the processors"
    yield "versions", f"torch {machine.torch}, Python {machine.python}, idbg {machine.idbg}"
    yield "commit", machine.commit or "none: the program is in no git checkout"
