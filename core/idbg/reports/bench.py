"""How do benchmark rows read to a person, and to another program?"""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from idbg.format.amounts import NOTHING, counted, duration, elapsed, size
from idbg.schema import strict_json
from idbg.schema.bench import EAGER, Latency, Row, SpeedChange

SCHEMA = "idbg.bench/1"
HEADS = ("backend", "cold", "warm", "median", "p95", "speed-up", "peak", "graphs", "breaks", "violations", "numbers")
NUMBERS = {"passed": "agree", "failed": "WRONG", "error": "not compared", "empty": "not compiled"}


def to_json(
    rows: Sequence[Row], changes: Sequence[SpeedChange] = (), notes: Sequence[str] = (), kernels: Sequence[object] = ()
) -> str:
    """Strict JSON, as docs/json-schema.md has it."""
    plain = {
        "schema": SCHEMA,
        "passed": passed(rows),
        "rows": list(rows),
        "changes": [
            {
                "program": change.now.program,
                "backend": change.now.backend,
                "direction": change.direction,
                "ratio": change.ratio,
                "p": change.p,
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
    return strict_json.formatted(plain).decode()


def to_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV with a line for each, without the samples of the latency."""
    import csv  # not at the top: the first paint would wait for it

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    plain = ("program", "backend", "status", "reason", "kind", "device", "dtype", "batch")
    figures = (
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
    writer.writerow([*plain, *figures, "diff", *(f"latency_ms_{part}" for part in parts), "marks"])
    for row in rows:
        latency = [getattr(row.latency_ms, part) if row.latency_ms else None for part in parts]
        values = [getattr(row, name) for name in (*plain, *figures, "diff")]
        writer.writerow([*values, *latency, "; ".join(row.caveats)])
    return out.getvalue()


def passed(rows: Sequence[Row]) -> bool:
    """Whether there is a row, none failed, and no row's numbers are wrong."""
    return bool(rows) and not any(_is_bad(row) for row in rows)


def _is_bad(row: Row) -> bool:
    return row.status == "failed" or row.diff in ("failed", "error", "empty")


def report(rows: Sequence[Row], changes: Sequence[SpeedChange] = ()) -> str:
    """The table of each program, what is doubtful in it, what changed, and the verdict."""
    lines = [line for _, of_one in groupby(rows, key=lambda row: row.program) for line in _program(list(of_one))]
    lines += _changes(changes)
    return "\n".join([*lines, verdict(rows)])


def _program(rows: list[Row]) -> Iterator[str]:
    yield f"{rows[0].program}   {how(rows)}"
    table = [HEADS, *(cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(HEADS))]
    for line in table:
        name, *figures = line
        told = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))]
        yield f"  {'  '.join(told)}".rstrip()
    yield from (f"  {line}" for line in doubts(rows))
    yield ""


def how(rows: Sequence[Row]) -> str:
    """What a call is of these rows of one program, of which size, and on which machine they were measured."""
    first = next((row for row in rows if row.machine), rows[0])
    machine = first.machine
    said = ["training step" if first.kind == "training" else "forward"]
    said += [f"batch {first.batch}"] if first.batch else []
    said += [first.dtype] if first.dtype else []
    said += [first.size] if first.size else []
    if machine:
        threads = f"{counted(machine.threads, 'thread')} of {machine.processors}"
        said += [machine.device, threads, f"torch {machine.torch}"]
    return ", ".join(said)


def doubts(rows: Iterable[Row]) -> Iterator[str]:
    """What failed, what is wrong, and what makes a figure doubtful."""
    for row in rows:
        yield from (f"⚠ {row.backend}: nothing was compiled" for _ in range(row.diff == "empty"))
        yield from (f"✘ {row.backend} failed: {row.reason}" for _ in range(row.status == "failed"))
        yield from (f"✘ {row.backend}: {row.diff_note}" for _ in range(row.diff in ("failed", "error")))
        yield from (f"⚠ {row.backend}: {caveat}" for caveat in row.caveats)


def latest(rows: Iterable[Row]) -> list[Row]:
    """The last measurement of each, in the order in which they were measured first."""
    return list({row.key: row for row in rows}.values())


def cells(row: Row) -> tuple[str, ...]:
    """The row under HEADS; "-" is what was not measured."""
    latency = row.latency_ms
    return (
        row.backend,
        _seconds(row.cold_compile_s),
        _seconds(row.warm_compile_s),
        duration(latency.median) if latency else NOTHING,
        duration(latency.p95) if latency else NOTHING,
        f"{row.speedup:.2f} x" if row.speedup else NOTHING,
        size(row.peak_bytes) if row.peak_bytes is not None else NOTHING,
        *(NOTHING if figure is None else f"{figure:,}" for figure in (row.graphs, row.breaks, row.violations)),
        numbers(row),
    )


def numbers(row: Row) -> str:
    """Whether the row's numbers are eager's; "-" where that was not looked at."""
    if row.status == "failed":
        return "failed"
    return "reference" if row.backend == EAGER else NUMBERS.get(row.diff or "", NOTHING)


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else elapsed(value)


def spread(latency: Latency) -> str:
    """The median and the standard deviation of a call: "1.25 ms ± 30 µs"."""
    return f"{duration(latency.median)} ± {duration(latency.std)}"


def _changes(changes: Sequence[SpeedChange]) -> Iterator[str]:
    if not changes:
        return
    yield "since then:"
    for change in changes:
        assert change.now.latency_ms is not None and change.before.latency_ms is not None
        was, now = (duration(row.latency_ms.median) for row in (change.before, change.now) if row.latency_ms)
        sign = {"faster": "✔", "slower": "✘", "same": "="}[change.direction]
        said = "no difference beyond the noise" if change.direction == "same" else change.direction
        also = f"   also changed: {', '.join(change.what)}" if change.what else ""
        yield f"  {sign} {change.now.program} {change.now.backend}: {was} → {now}   {said} (p {change.p:.2g}){also}"
    yield ""


def verdict(rows: Sequence[Row]) -> str:
    """What comes of all rows, in a line with its sign."""
    failed = sum(row.status == "failed" for row in rows)
    wrong = sum(row.status != "failed" and _is_bad(row) for row in rows)
    if not rows:
        return "✘ nothing was measured"
    if failed or wrong:
        said = [f"{failed} failed"] * bool(failed) + [f"{wrong} with numbers that do not agree"] * bool(wrong)
        return f"✘ of {counted(len(rows), 'row')}, {' and '.join(said)}"
    return f"✔ PASS   {counted(len(rows), 'row')}"
