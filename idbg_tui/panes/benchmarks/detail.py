"""What is known of one benchmark row? Every figure, its samples, the machine, and what was not measured."""

from collections.abc import Iterator

from idbg.format.amounts import NOT_MEASURED
from idbg.format.glyphs import plain
from idbg.reports.bench import numbers
from idbg.reports.bench_row import figures, machine, samples_words
from idbg.schema.bench import Latency, Row, SpeedChange
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
        lines += sentences(f"numbers: {numbers(row)}: {rows.reason(row)}".rstrip(": "), width, BAD)
    for caveat in row.caveats:
        lines += sentences(f"doubtful: {caveat}", width, DOUBT)
    if change is not None:
        lines += sentences(rows.changed(change), width, rows.style_of(change))
    lines += [_line(label, text) for label, text in figures(row)]
    lines += _samples(row.latency_ms, width)
    lines += sentences("", width)
    return lines + [_line(label, text) for label, text in machine(row)]


def _line(label: str, text: str) -> Entry:
    style, words = "dim" if text.startswith(NOT_MEASURED) else "", plain(text)
    return Entry(lambda width: [(f" {label:<{_LABEL}}", "dim"), (clip(words, width - 1 - _LABEL), style)])


def _samples(latency: Latency | None, width: int) -> Iterator[Entry]:
    if latency is None:
        return
    yield from sentences("", width)
    yield from sentences(samples_words(latency), width, "strong")
    for drawn in charts.histogram(latency.samples, width):
        yield Entry.fixed(drawn, picture=True)
