"""Record the guards of each compiled frame, and the times of its calls."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from torch.fx import GraphModule

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import guards, tracing
from idbg.engine.compat.lowering import Compiled
from idbg.schema.decisions.dynamo import FrameCalls, FrameGuards


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """Each frame's guards become an event as its compile ends, and the times of its calls at the end."""

    def done(found: FrameGuards) -> None:
        frame = capture.frame(found.frame).frame
        capture.decided(frame, replace(found, frame=frame))

    clocks: dict[str, _Clock] = {}
    with guards.observe_guards(capture.feature("guard costs"), done), _calls_timed(capture, clocks):
        try:
            yield
        finally:  # a program that fails has made calls too
            capture.decided("", *(clock.calls_of(frame) for frame, clock in clocks.items() if clock.calls))


@dataclass
class _Clock:
    """The calls of one frame's graph so far."""

    calls: int = 0
    first: float = 0.0
    fastest: float = float("inf")

    def took(self, seconds: float) -> None:
        """One more call."""
        if not self.calls:
            self.first = seconds
        self.calls += 1
        self.fastest = min(self.fastest, seconds)

    def calls_of(self, frame: str) -> FrameCalls:
        return FrameCalls(frame, self.calls, self.fastest, self.first)


@contextmanager
def _calls_timed(capture: RunCapture, clocks: dict[str, _Clock]) -> Iterator[None]:
    """While it lasts, each call of a compiled frame is timed: two reads of the clock."""
    lower = capture.lower
    if lower is None:
        yield
        return

    def timed(gm: GraphModule, inputs: list[object], *rest: Any) -> Compiled:
        return _timed(lower(gm, inputs, *rest), clock(capture.frame(tracing.current_frame()).frame).took)

    def clock(frame: str) -> _Clock:
        clocks[frame] = new = _Clock()  # also where torch restarts the trace of a frame
        return new

    capture.lower = timed
    try:
        yield
    finally:
        capture.lower = lower


def _timed(compiled: Compiled, took: Callable[[float], None]) -> Compiled:
    def call(*args: object, **kwargs: object) -> object:
        began = time.perf_counter()
        try:
            return compiled(*args, **kwargs)
        finally:
            took(time.perf_counter() - began)

    return call
