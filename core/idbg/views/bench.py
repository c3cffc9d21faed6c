"""Show what compiling buys: each measured row with its times, memory and numbers, what is doubtful, what changed."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from idbg.format.amounts import NOT_MEASURED, counted, day, duration, seconds, share, size
from idbg.format.glyphs import MARKS, VERDICT_SIGNS
from idbg.format.plain_text import uncoloured
from idbg.schema import programs
from idbg.schema.bench import EAGER, Direction, Latency, Row, SpeedChange
from idbg.schema.strict_json import picked
from idbg.views import bench_charts, tree
from idbg.views.tree import Cell, Chart, Column, Section, Table, Tone, Verdict, words

TITLE = "Benchmarks"
_CHANGED: dict[Direction, Verdict] = {"faster": "ok", "slower": "warning"}
SCHEMA = "idbg.bench/1"
NUMBERS = {"passed": "agree", "failed": "WRONG", "error": "not compared", "empty": "not compiled"}
_LEAST_P = 1e-12  # below that the normal approximation says nothing
_LABEL = 16  # cells
_OVER_TIME = 2  # measurements of one row, of which a line over time is drawn
COLUMNS = (
    Column("cold", "seconds", 8),
    Column("warm", "seconds", 7),
    Column("median", "seconds", 10),
    Column("± std", "seconds", 5),
    Column("p95", "seconds", 1),
    Column("speed-up", "ratio", 9),
    Column("peak", "bytes", 6),
    Column("graphs", "count", 2),
    Column("breaks", "count", 3),
    Column("violations", "count", 4),
    Column("numbers", rank=11),
)
_TONES: dict[Verdict, Tone] = {"ok": "clean", "warning": "fallback", "error": "reject", "unknown": "dim"}
_LOOKS: dict[Verdict, programs.Verdict] = {
    "ok": "clean",
    "warning": "violations",
    "error": "failed",
    "unknown": "waiting",
}


def view(
    rows: Sequence[Row], changes: Sequence[SpeedChange] | None = None, problem: str = "", *, everything: bool = False
) -> Section:
    """A table for each program and setting; below a row what is doubtful about it and how it compares with its last
    measurement (`changes` None: it was not compared); with `everything` every figure and the charts too. `problem`: why
    no earlier one can be read.
    """
    body: list[tree.Block] = []
    for _, group in groupby(rows, key=lambda row: (row.file, row.device, row.dtype, row.batch)):
        own = list(group)
        made = [_row(row, changes, everything=everything) for row in own]
        body.append(Table(COLUMNS, made, "backend", conditions(own)))
        body += _charts(own) if everything else ()
    if problem:
        body.append(tree.Row("problem", words((f"no earlier measurement can be read: {problem}", "fallback"))))
    return Section(TITLE, summary(rows), len(rows), verdict(rows), tuple(body))


def verdict(rows: Iterable[Row]) -> Verdict:
    """Good only where every row was measured, its numbers are right and no time is doubtful."""
    found = list(rows)
    if not passed(found):
        return "error" if found else "unknown"
    return "warning" if any(row.caveats for row in found) else "ok"


def passed(rows: Sequence[Row]) -> bool:
    """Whether there is a row, none failed, and no row's numbers are wrong."""
    return bool(rows) and not any(_is_bad(row) for row in rows)


def _is_bad(row: Row) -> bool:
    return row.status == "failed" or row.diff in ("failed", "error", "empty")


def summary(rows: Sequence[Row]) -> str:
    """What all rows come to, in a line with its sign."""
    if not rows:
        return "nothing was measured"
    sign = _sign(verdict(rows))
    failed = sum(row.status == "failed" for row in rows)
    wrong = sum(row.status != "failed" and _is_bad(row) for row in rows)
    if failed or wrong:
        parts = [f"{failed} failed"] * bool(failed) + [f"{wrong} with numbers that do not agree"] * bool(wrong)
        return f"{sign} of {counted(len(rows), 'row')}, {' and '.join(parts)}"
    doubtful = sum(bool(row.caveats) for row in rows)
    return f"{sign} {counted(len(rows), 'row')} measured" + (f", {doubtful} with doubtful times" if doubtful else "")


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last measurement of each, in the order in which they were measured first."""
    return list({row.key: row for row in rows}.values())


def key(row: Row) -> tuple[object, ...]:
    """This very measurement."""
    return (*row.key, row.at)


def conditions(rows: Sequence[Row]) -> str:
    """The program, what a call of it is, of which size, and on which machine these rows were measured."""
    first = next((row for row in rows if row.machine), rows[0])
    machine = first.machine
    parts = ["training step" if first.kind == "training" else "forward"]
    parts += [f"batch {first.batch}"] if first.batch else []
    parts += [part for part in (first.dtype, first.size) if part]
    if machine:
        threads = f"{counted(machine.threads, 'thread')} of {machine.processors}"
        parts += [machine.device or first.device, threads, f"torch {machine.torch}"]
    return f"{first.program}   {', '.join(parts)}"


def _charts(rows: Sequence[Row]) -> Iterator[Chart]:
    last = latest(rows)
    samples = [row.latency_ms.samples if row.latency_ms else () for row in last]
    own = bench_charts.latency(last)
    drawn = [own, bench_charts.speedup(last), bench_charts.compile_time(last)]
    drawn += [bench_charts.history(rows)] if len(rows) >= _OVER_TIME * len(last) else []
    for chart in drawn:
        strokes = "Strokes below a bar are its samples" if chart is own else ""
        caption = ". ".join(filter(None, (chart.title, strokes, chart.beyond)))
        yield Chart("bench", (chart, samples if chart is own else ()), caption)


def _sign(good: Verdict) -> str:
    return VERDICT_SIGNS[_LOOKS[good]]


# ---------------------------------------------------------------- a row


def _row(row: Row, changes: Sequence[SpeedChange] | None, *, everything: bool) -> tree.Row:
    good = verdict([row])
    tone, latency = _TONES[good], row.latency_ms
    change = next((each for each in changes or () if key(each.now) == key(row)), None)
    below = list(_notes(row))
    if change is not None:
        below.append(
            _note(
                row,
                len(below),
                change_words(change),
                change_tone(change),
                _sign(_CHANGED[change.direction]) if change.direction in _CHANGED else "=",
            )
        )
    elif changes is not None and latency is not None:
        below.append(_note(row, len(below), "not measured before", "dim", MARKS["arrow"]))
    if everything:
        figures = tree.Row(
            (key(row), "figures"),
            words(("every figure, and where it was measured", "dim")),
            rows=_facts(row),
            open="label",
        )
        below.append(figures)
    milliseconds = (latency.median, latency.std, latency.p95) if latency else (None, None, None)
    times: list[float | None] = [None if value is None else value / 1e3 for value in milliseconds]
    figures_of = (row.cold_compile_s, row.warm_compile_s, *times, row.speedup or None, row.peak_bytes)
    counts = (row.graphs, row.breaks, row.violations)
    failed: Tone = "reject" if row.status == "failed" else ""
    numbers_tone: Tone = "reject" if _is_bad(row) else "clean" if row.diff == "passed" else "dim"
    return tree.Row(
        key(row),
        words((f"{_sign(good)} ", tone), (row.backend, failed or "strong")),
        (*(Cell(value, failed) for value in (*figures_of, *counts)), Cell(numbers(row), numbers_tone)),
        rows=below,
        open="all",
    )


def _notes(row: Row) -> Iterator[tree.Row]:
    """What failed, what is wrong, and what makes a figure doubtful."""
    texts: list[tuple[str, Verdict]] = []
    if row.status == "failed":
        texts.append((f"failed: {reason(row)}", "error"))
    elif row.diff == "empty":
        texts.append(("nothing was compiled", "warning"))
    elif _is_bad(row):
        texts.append((reason(row) or numbers(row) or "", "error"))
    texts += [(caveat, "warning") for caveat in row.caveats]
    for number, (text, bad) in enumerate(texts):
        yield _note(row, number, text, _TONES[bad], _sign(bad))


def _note(row: Row, number: int, text: str, tone: Tone, sign: str) -> tree.Row:
    return tree.Row((key(row), number), words((f"{sign} {text}", tone)))


def reason(row: Row) -> str:
    """Why it failed, or what is wrong with its numbers, without what would colour a terminal."""
    return uncoloured(row.reason if row.status == "failed" else row.diff_note)


def numbers(row: Row) -> str | None:
    """Whether the row's numbers are eager's; None where that was not looked at."""
    if row.status == "failed":
        return "failed"
    return "reference" if row.backend == EAGER else NUMBERS.get(row.diff or "")


def change_words(change: SpeedChange) -> str:
    """ "faster: 1.2 ms to 0.9 ms, since 20 Nov 15:02"."""
    was, now = (duration(row.latency_ms.median) for row in (change.before, change.now) if row.latency_ms)
    what = "no difference beyond the noise" if change.direction == "same" else change.direction
    also = f"; also changed: {', '.join(change.what)}" if change.what else ""
    p = f"p {change.p:.2g}" if change.p >= _LEAST_P else f"p < {_LEAST_P:g}"
    return f"{what}: {was} {MARKS['arrow']} {now} ({p}) since {day(change.before.at)}{also}"


def change_tone(change: SpeedChange) -> Tone:
    """Plain where it is within the noise."""
    tones: dict[str, Tone] = {"faster": "clean", "slower": "fallback"}
    return tones.get(change.direction, "")


# ---------------------------------------------------------------- every figure of a row


def measurement(row: Row, change: SpeedChange | None = None) -> Section:
    """All of one measurement: what is wrong or doubtful, every figure, its samples, the machine."""
    changed = [tree.Row("change", words((change_words(change), change_tone(change))))] if change is not None else []
    samples = [Chart("samples", row.latency_ms)] if row.latency_ms else []
    body: tuple[tree.Block, ...] = (*_notes(row), *changed, *_facts(row), *samples)
    return Section(f"{row.program} on {row.backend}", "", body=body)


def _facts(row: Row) -> list[tree.Row]:
    facts = [*figures(row), *(("samples", samples_words(each)) for each in (row.latency_ms,) if each), *machine(row)]
    return [
        tree.Row((key(row), "figure", number), words((f"{label:<{_LABEL}}", "dim"), (text, _known(text))))
        for number, (label, text) in enumerate(facts)
    ]


def _known(text: str) -> Tone:
    return "dim" if text.startswith(NOT_MEASURED) else ""


def figures(row: Row) -> Iterator[tuple[str, str]]:
    """Each figure by its label, also those that were not measured."""
    what = "training step" if row.kind == "training" else "forward"
    yield "call", ", ".join(part for part in (what, row.dtype, f"batch {row.batch}" if row.batch else "") if part)
    if row.backend != EAGER:
        yield (
            "cold compile",
            _or_not(row.cold_compile_s, lambda value: f"{seconds(value)} to the first result, no cache"),
        )
        yield "warm compile", _or_not(row.warm_compile_s, lambda value: f"{seconds(value)} with the caches filled")
        yield "speed-up", _or_not(row.speedup, lambda value: f"{value:.3g} x eager's median")
    yield from _latency("latency", row.latency_ms)
    if row.kind == "training":
        yield from _latency("forward alone", row.forward_ms)
    yield "throughput", _or_not(row.items_per_s, _items_a_second)
    yield "peak memory", _or_not(row.peak_bytes, lambda value: f"{size(int(value))} ({value:,} bytes)")
    if row.backend != EAGER:
        yield "graphs", _or_not(row.graphs, "{:,}".format)
        yield "graph breaks", _or_not(row.breaks, "{:,}".format)
        unchecked = f"{NOT_MEASURED}: this backend checks no rules" if row.graphs is not None else NOT_MEASURED
        yield "violations", unchecked if row.violations is None else f"{row.violations:,}"
        yield "numbers", (numbers(row) or NOT_MEASURED) if row.diff else NOT_MEASURED


def _items_a_second(value: float) -> str:
    return f"{value:,.3g} items a second" if value < 100 else f"{value:,.0f} items a second"


def _or_not(value: float | None, text: Callable[[float], str]) -> str:
    return NOT_MEASURED if value is None else text(value)


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


# ---------------------------------------------------------------- for programs


def as_json(
    rows: Sequence[Row], changes: Sequence[SpeedChange] = (), notes: Sequence[str] = (), kernels: Sequence[object] = ()
) -> dict[str, object]:
    """The rows as docs/json-schema.md has them."""
    return {
        "schema": SCHEMA,
        "passed": passed(rows),
        "rows": list(rows),
        "changes": [
            {
                **picked(change.now, "program backend"),
                **picked(change, "direction ratio p"),
                "before_ms": change.before.latency_ms and change.before.latency_ms.median,
                "now_ms": change.now.latency_ms and change.now.latency_ms.median,
                "before_at": change.before.at,
                "also_changed": change.what,
            }
            for change in changes
        ],
        "kernels": list(kernels),
        "notes": list(notes),
    }


def as_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV with a line for each, without the samples of the latency."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    plain = ("program", "backend", "status", "reason", "kind", "device", "dtype", "batch")
    figures_of = (
        "cold_compile_s",
        "warm_compile_s",
        "speedup",
        "items_per_s",
        "peak_bytes",
        "graphs",
        "breaks",
        "violations",
    )
    parts = ("median", "p95", "mean", "std")
    writer.writerow([*plain, *figures_of, "diff", *(f"latency_ms_{part}" for part in parts), "marks"])
    for row in rows:
        latency = [getattr(row.latency_ms, part) if row.latency_ms else None for part in parts]
        values = [getattr(row, name) for name in (*plain, *figures_of, "diff")]
        writer.writerow([*values, *latency, "; ".join(row.caveats)])
    return out.getvalue()
