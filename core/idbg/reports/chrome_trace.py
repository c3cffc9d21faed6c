"""Write the time of a compile as a trace for Perfetto or chrome://tracing.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format"), its
JSON object with complete ("X") and metadata ("M") events. Times are in microseconds.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from idbg.analysis.decisions import times
from idbg.analysis.decisions.times import Timing
from idbg.schema.errors import output_errors
from idbg.schema.runs import Run

PROCESS = 1


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event; `dur` is there of complete ones, and `ts` counts from the run's begin."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float | None = None
    dur: float | None = None
    cat: str = ""
    args: dict[str, object] = {}


class Trace(msgspec.Struct, frozen=True, rename="camel"):
    """A whole file."""

    trace_events: list[Event]
    display_time_unit: str = "ms"


def trace(run: Run) -> Trace:
    """The compiling thread is thread 0, what went on beside it others. What lasts is cut where the run ended."""
    return Trace([*_names(run), *_events(run)])


def write(run: Run, path: Path) -> None:
    """Raises OutputError where it cannot be written."""
    with output_errors(f"cannot write the trace {path}", "name another with --trace"):
        path.write_bytes(msgspec.json.encode(trace(run)))


def _names(run: Run) -> Iterator[Event]:
    yield Event("process_name", "M", PROCESS, 0, args={"name": f"idbg run {run.number}: {run.program.path}"})
    yield Event("thread_name", "M", PROCESS, 0, args={"name": "compiling"})
    for lane in sorted({lane for _, lane in times.lanes(_single(times.tree(run), beside=True))}):
        yield Event("thread_name", "M", PROCESS, 1 + lane, args={"name": f"beside it {1 + lane}"})


def _single(timings: Sequence[Timing], *, beside: bool) -> list[Timing]:
    """What has a place in time, as short ones that were counted together have not."""
    return [timing for timing in timings if timing.span.times == 1 and timing.beside is beside]


def _events(run: Run) -> Iterator[Event]:
    timings = times.tree(run)
    begin = min((timing.span.began for timing in timings), default=0.0)
    short: dict[int, dict[str, str]] = {}
    for timing in timings:
        if timing.span.times > 1:
            words = f"{timing.span.times:,} times, {1000 * timing.seconds:.2f} ms in all"
            short.setdefault(timing.span.parent, {})[timing.span.name] = words
    around: list[tuple[int, float, float]] = []  # what it is in: depth, begin and end, so that rounding crosses nothing
    for timing in _single(timings, beside=False):
        floor = around[-1][1] if around else 0.0
        while around and around[-1][0] >= timing.depth:
            floor = around.pop()[2]
        ceiling = around[-1][2] if around else math.inf
        start = min(max(_micro(timing.span.began - begin), floor), ceiling)
        end = min(max(_micro(timing.span.began + timing.seconds - begin), start), ceiling)
        yield _event(timing, 0, start, end, short)
        around.append((timing.depth, start, end))
    for timing, lane in times.lanes(_single(timings, beside=True)):
        start = _micro(timing.span.began - begin)
        yield _event(timing, 1 + lane, start, max(_micro(timing.span.began + timing.seconds - begin), start), short)


def _micro(seconds: float) -> float:
    return round(max(seconds, 0.0) * 1e6, 1)


def _event(timing: Timing, thread: int, start: float, end: float, short: dict[int, dict[str, str]]) -> Event:
    span = timing.span
    args: dict[str, object] = {"frame": span.frame} if span.frame else {}
    if span.nodes is not None:
        args |= {"nodes before": span.nodes[0], "nodes after": span.nodes[1]}
    if timing.lasts:
        args["ended"] = "no: cut where the run ended"
    if span.id in short:
        args["short ones in it"] = short[span.id]
    name = f"{span.name}: {span.what}" if span.what else span.name
    return Event(name, "X", PROCESS, thread, start, round(end - start, 1), span.name, args)
