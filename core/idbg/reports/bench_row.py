"""What is known of one benchmark row: every figure by its label, samples, machine, what was not measured?"""

from collections.abc import Callable, Iterator

from idbg.format.amounts import NOT_MEASURED, counted, day, duration, share, size
from idbg.reports.bench import numbers
from idbg.reports.bench_plots import said
from idbg.schema.bench import EAGER, Latency, Row


def figures(row: Row) -> Iterator[tuple[str, str]]:
    """Each figure by its label; what was not measured is said to be so."""
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
        yield "numbers", numbers(row) if row.diff else NOT_MEASURED


def _or_not(value: float | None, words: Callable[[float], str]) -> str:
    return NOT_MEASURED if value is None else words(value)


def _latency(label: str, latency: Latency | None) -> Iterator[tuple[str, str]]:
    if latency is None:
        yield label, NOT_MEASURED
        return
    yield label, f"median {duration(latency.median)}, p95 {duration(latency.p95)}"
    yield "", f"mean {duration(latency.mean)} ± {duration(latency.std)} (standard deviation)"
    yield "", f"from {duration(min(latency.samples))} to {duration(max(latency.samples))}"


def samples_words(latency: Latency) -> str:
    """How many samples there are, of what, and what went before them."""
    each = f"each the mean of {latency.block} calls" if latency.block > 1 else "each one call"
    how = "had settled" if latency.settled else "had not settled"
    warmup = f"after {counted(latency.warmup, 'call')} of warm-up: it {how}"
    return f"{counted(len(latency.samples), 'sample')}, {each}, {warmup}"


def machine(row: Row) -> Iterator[tuple[str, str]]:
    """When, of which file, on which machine and with which versions."""
    on = row.machine
    yield "measured", day(row.at)
    yield "program", row.file
    yield "its hash", row.program_hash or "none: it is no file"
    if on is None:
        yield "machine", NOT_MEASURED
        return
    yield "machine", ", ".join(part for part in (on.host, on.device or row.device) if part)
    yield "threads", f"{on.threads} of {on.processors} processors"
    busy = on.others
    yield "others", NOT_MEASURED if busy is None else f"other processes used {share(busy)} of the processors"
    yield "versions", f"torch {on.torch}, Python {on.python}, idbg {on.idbg}"
    yield "commit", on.commit or "none: the program is in no git checkout"
