"""What does torch check before it uses a compiled frame, and what share of a call does that take?"""

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
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.dynamo import FrameCalls, FrameGuards


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, each frame's guards are told as its compile ends, and at the end how its calls went."""

    def tell(told: FrameGuards) -> None:
        named = replace(told, frame=capture.frame(told.frame).frame)
        capture.emit(events.GuardsCaptured(run=capture.run, guards=named))

    clocks: dict[str, _Clock] = {}
    with guards.told(tell, harmless(capture, "the guards")), _calls_timed(capture, clocks):
        try:
            yield
        finally:  # a program that fails has made calls too
            calls = tuple(clock.told(frame) for frame, clock in clocks.items() if clock.calls)
            if calls:
                capture.emit(events.CallsTimed(run=capture.run, calls=calls))


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

    def told(self, frame: str) -> FrameCalls:
        return FrameCalls(frame, self.calls, self.fastest, self.first)


@contextmanager
def _calls_timed(capture: RunCapture, clocks: dict[str, _Clock]) -> Iterator[None]:
    """While it lasts, what the run's backend makes of a frame is timed at each call: two looks at the clock."""
    lower = capture.lower
    if lower is None:
        yield
        return

    def timed(gm: GraphModule, inputs: list[object], *given: Any) -> Compiled:
        return _timed(lower(gm, inputs, *given), clock(capture.frame(tracing.current_frame()).frame).took)

    def clock(frame: str) -> _Clock:
        clocks[frame] = made = _Clock()  # another where torch traces a frame anew
        return made

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
