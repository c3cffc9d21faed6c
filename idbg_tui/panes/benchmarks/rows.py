"""How do benchmark rows read as a table, with what makes them doubtful and what changed under it?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from idbg.format.amounts import NOTHING, counted, day, duration, size
from idbg.format.glyphs import MARKS, VERDICT_SIGNS, plain
from idbg.reports.bench import latest, numbers, passed
from idbg.schema.bench import Latency, Row, SpeedChange
from idbg_tui.panes.benchmarks import kernel_times
from idbg_tui.panes.benchmarks.kernel_times import KernelItem
from idbg_tui.panes.log import narration
from idbg_tui.panes.log.narration import clean
from idbg_tui.state import measurements
from idbg_tui.state.state import State
from idbg_tui.widgets import lines
from idbg_tui.widgets.lines import clip, fit

OK, DOUBT, BAD = "clean", "fallback", "reject"
_NAME = 32  # cells of a backend's name at most
_LEAST_NAME = 8
_LEAST_P = 1e-12  # below that the normal approximation says nothing


@dataclass(frozen=True)
class Told:
    """A sentence, and the row that it is about."""

    text: str
    style: str = ""
    row: Row | None = None


@dataclass(frozen=True)
class Heads:
    """The names of the columns."""


Item = Told | Heads | Row | KernelItem


@dataclass(frozen=True)
class Column:
    """The column with the least `need` goes away first where there is no room; 9 stays."""

    head: str
    need: int
    cell: Callable[[Row], str]


def _of_latency(said: Callable[[Latency], str]) -> Callable[[Row], str]:
    return lambda row: said(row.latency_ms) if row.latency_ms else NOTHING


def _amount(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else duration(1e3 * value)


COLUMNS = (
    Column("cold", 7, lambda row: _seconds(row.cold_compile_s)),
    Column("warm", 6, lambda row: _seconds(row.warm_compile_s)),
    Column("median", 9, _of_latency(lambda latency: duration(latency.median))),
    Column("± std", 5, _of_latency(lambda latency: f"± {duration(latency.std)}")),
    Column("p95", 0, _of_latency(lambda latency: duration(latency.p95))),
    Column("speed-up", 8, lambda row: f"{row.speedup:.2f} x" if row.speedup else NOTHING),
    Column("peak", 4, lambda row: size(row.peak_bytes) if row.peak_bytes is not None else NOTHING),
    Column("graphs", 1, lambda row: _amount(row.graphs)),
    Column("breaks", 2, lambda row: _amount(row.breaks)),
    Column("violations", 3, lambda row: _amount(row.violations)),
    Column("numbers", 9, numbers),
)


# ---------------------------------------------------------------- what is listed


def items(state: State) -> list[Item]:
    """What is measured now, the verdict, then each program's table with what is to be said of it."""
    rows = latest(state.history.rows)
    told: list[Item] = [*_now(state)]
    if rows:
        told.append(_verdict(rows))
    for _, group in groupby(rows, key=_setting):
        told += _table(list(group), state)
    if (timed := state.history.kernels) is not None:
        told += [Told(f" {text}", style) for text, style in kernel_times.said(timed)]
        told += kernel_times.items(timed.times) if timed.times else []
    return told


def is_bad(row: Row) -> bool:
    """Whether the row failed, or its numbers are not eager's."""
    return not passed([row])


def mark(state: State) -> str:
    """Fine only where every row was measured, is right, and is not doubtful, and nothing is left to measure."""
    rows = latest(state.history.rows)
    if any(map(is_bad, rows)):
        return VERDICT_SIGNS["failed"]
    if not rows or state.measuring:
        return ""
    doubtful = any(row.caveats for row in rows) or state.measurements.failure is not None
    return VERDICT_SIGNS["violations" if doubtful else "clean"]


def measured_now(state: State, *, brief: bool = False) -> str:
    """ "inductor: warm · step 4 of 6: warming up   2 rows left"; "" where nothing is. `brief`: the numbers."""
    task, step, left = state.history.task, state.history.step, state.history.rows_left
    if not state.measuring:
        return ""
    what = f"{task.backend}: {'each kernel' if task.task == 'kernels' else task.task}" if task else "starting"
    if step is not None and brief:
        return f"{what} {MARKS['separator']} step {step.step} of {step.of}"
    if step is not None:
        what += f" {MARKS['separator']} {narration.step(step)}"
    return what if task is not None and task.task == "kernels" else f"{what}   {counted(left, 'row')} left"


def measured_for(state: State, now: float) -> tuple[str, str]:
    """ "12 s" and "40 s": how long the step has taken by now, and all that is measured."""
    history = state.history
    began = history.step or history.task
    step = began.at if began else history.measuring_since
    return f"{max(now - step, 0):.0f} s", f"{max(now - history.measuring_since, 0):.0f} s"


def _now(state: State) -> Iterator[Told]:
    failure = state.measurements.failure
    if state.measuring:
        yield Told(f" measuring {measured_now(state)}   (c stops it)", "accent")
    elif state.measurements.waiting:
        left = counted(state.measurements.waiting, "row")
        yield Told(f" {left} to measure when the compile is done   (c cancels both)", "accent")
    elif failure is not None and failure.kind == "cancelled":
        yield Told(" stopped before all was measured: B measures again", DOUBT)
    elif failure is not None:
        yield Told(f" {failure.message}; {failure.hint}" if failure.hint else f" {failure.message}", BAD)
    elif not state.live and state.history.rows_left:
        yield Told(f" the session ended with {counted(state.history.rows_left, 'row')} left to measure", DOUBT)


def _verdict(rows: Sequence[Row]) -> Told:
    failed = sum(row.status == "failed" for row in rows)
    wrong = sum(row.status != "failed" and is_bad(row) for row in rows)
    doubtful = sum(bool(row.caveats) for row in rows)
    measured = f"{counted(len(rows), 'row')} measured"
    if failed or wrong:
        said = [f"{failed} failed"] * bool(failed) + [f"{wrong} with numbers that do not agree"] * bool(wrong)
        return Told(f" {VERDICT_SIGNS['failed']} of {counted(len(rows), 'row')}, {' and '.join(said)}", BAD)
    if doubtful:
        return Told(f" {VERDICT_SIGNS['violations']} {measured}, {doubtful} with doubtful times", DOUBT)
    return Told(f" {VERDICT_SIGNS['clean']} {measured}", OK)


def _setting(row: Row) -> tuple[object, ...]:
    return row.file, row.device, row.dtype, row.batch


def _table(rows: list[Row], state: State) -> Iterator[Item]:
    yield Told(f" {setting(rows)}", "strong")
    yield Heads()
    yield from rows
    for row in rows:
        if row.status == "failed" and _has_figures(row):
            yield Told(f" {VERDICT_SIGNS['failed']} {row.backend} failed: {reason(row)}", BAD, row)
        elif row.diff in ("failed", "error"):
            yield Told(f" {VERDICT_SIGNS['failed']} {row.backend}: {reason(row) or numbers(row)}", BAD, row)
        yield from (Told(f" {VERDICT_SIGNS['violations']} {row.backend}: {one}", DOUBT, row) for one in row.caveats)
    yield from _since(rows, state.measurements.past)


def reason(row: Row) -> str:
    """Why it failed, or what is wrong with its numbers, without what would colour a terminal."""
    return clean(row.reason if row.status == "failed" else row.diff_note)


def setting(rows: Sequence[Row]) -> str:
    """How the rows were measured, and on what."""
    first = next((row for row in rows if row.machine), rows[0])
    how = ["training step" if first.kind == "training" else "forward"]
    how += [f"batch {first.batch}"] if first.batch else []
    how += [first.dtype] if first.dtype else []
    how += [first.size] if first.size else []
    if first.machine:
        machine = first.machine
        threads = f"{counted(machine.threads, 'thread')} of {machine.processors}"
        how += [machine.device or first.device, threads, f"torch {machine.torch}"]
    return f"{first.program}   {', '.join(how)}"


def _since(rows: Sequence[Row], past: measurements.PastMeasurements) -> Iterator[Told]:
    """How each row compares with the last time."""
    if past.problem:
        yield Told(f" no earlier measurement can be read: {past.problem}", DOUBT)
    compared = [(row, past.change_of(row)) for row in rows if row.latency_ms and measurements.key(row) in past.changes]
    if not compared:
        return
    if all(change is None for _, change in compared):
        yield Told(" nothing of this was measured before", "dim")
        return
    yield Told(" since the last time", "strong")
    for row, change in compared:
        if change is None:
            yield Told(f"   {row.backend} was not measured before", "dim", row)
        else:
            sign = {"faster": VERDICT_SIGNS["clean"], "slower": VERDICT_SIGNS["violations"], "same": "="}[
                change.direction
            ]
            yield Told(f" {sign} {row.backend}: {changed(change)}", style_of(change), row)


def style_of(change: SpeedChange) -> str:
    """The style of what is said of a change; plain where it is within the noise."""
    return {"faster": OK, "slower": DOUBT, "same": ""}[change.direction]


def changed(change: SpeedChange) -> str:
    """ "faster: 1.2 ms to 0.9 ms, since 20 Nov 15:02"."""
    was, now = (duration(row.latency_ms.median) for row in (change.before, change.now) if row.latency_ms)
    said = "no difference beyond the noise" if change.direction == "same" else change.direction
    also = f"; also changed: {', '.join(change.what)}" if change.what else ""
    p = f"p {change.p:.2g}" if change.p >= _LEAST_P else f"p < {_LEAST_P:g}"
    return f"{said}: {was} {MARKS['arrow']} {now} ({p}) since {day(change.before.at)}{also}"


# ---------------------------------------------------------------- how it is drawn


def columns(rows: Sequence[Row], width: int) -> tuple[int, list[tuple[Column, int]]]:
    """Cells of the name, then the columns that have room, each with its cells."""
    name = min(_NAME, max(_LEAST_NAME, *(len(row.backend) for row in rows)))
    shown = [(one, max(len(text) for text in (one.head, *map(one.cell, rows)))) for one in COLUMNS]
    while 3 + name + sum(cells + 2 for _, cells in shown) > width and (need := min(c.need for c, _ in shown)) < 9:
        shown = [one for one in shown if one[0].need != need]
    name = min(name, max(_LEAST_NAME, width - 3 - sum(cells + 2 for _, cells in shown)))
    return name, shown


def heads(rows: Sequence[Row], width: int) -> lines.StyledRow:
    """The names of those columns of a program's table that have room in `width` cells."""
    name, shown = columns(rows, width)
    words = "".join(f"  {one.head:>{cells}}" for one, cells in shown)
    return [(plain(clip(f"   {fit('backend', name)}{words}", width)), "dim")]


def row(one: Row, rows: Sequence[Row], width: int) -> lines.StyledRow:
    """One measurement; of one that failed before anything was measured, why."""
    name, shown = columns(rows, width)
    style = BAD if is_bad(one) else DOUBT if one.caveats else OK
    sign = VERDICT_SIGNS["failed" if is_bad(one) else "violations" if one.caveats else "clean"]
    start = [(f" {sign} ", style), (fit(one.backend, name), style if one.status == "failed" else "strong")]
    if one.status == "failed" and not _has_figures(one):
        return [*start, (clip(f"  failed: {reason(one)}", width - 3 - name), style)]
    figures = [(f"  {column.cell(one):>{cells}}", _style(column, one)) for column, cells in shown]
    return [(plain(text), each) for text, each in (*start, *figures)]


def _style(column: Column, row: Row) -> str:
    if row.status == "failed":
        return BAD
    return (BAD if is_bad(row) else OK if row.diff == "passed" else "dim") if column.head == "numbers" else ""


def _has_figures(row: Row) -> bool:
    return row.cold_compile_s is not None or row.latency_ms is not None
