"""Record the time of each part of a compile, nested, while it runs.

Torch traces the begin and end of each part, on any thread. A thread of idbg emits what is running within `TICK`; a
shorter part is emitted once, at its end; see `idbg.traces.spans`.
"""

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import kernel_builds
from idbg.engine.compat.kernel_builds import observe_builds
from idbg.engine.compat.passes import Pass, observe_passes
from idbg.traces import span_names
from idbg.traces.records import Timed
from idbg.traces.spans import OpenSpan, SpanStacks

TICK = 0.12  # seconds; a screen shows what runs within 0.2
_BUILT = frozenset({"c++ compile", "triton compile"})


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """While it lasts, all that torch times becomes spans."""
    keeper = Timekeeper(capture)
    capture.timekeeper = keeper.timed
    with (
        observe_passes(capture.feature("traced passes"), keeper.pass_began, keeper.pass_ended),
        observe_builds(capture.feature("kernel builds"), keeper),
    ):
        try:
            yield
        finally:
            keeper.stop()
            capture.timekeeper = None


class Timekeeper:
    """The spans of a run by thread, and those that are not emitted yet. Any thread may call it."""

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture
        self._lock = threading.RLock()
        self._spans = SpanStacks(threading.get_ident(), capture.named)
        self._in_pool: dict[int, OpenSpan] = {}
        self._pass: Pass | None = None  # that begins next
        self._work, self._over, self._stopped = threading.Event(), threading.Event(), threading.Event()
        safe = capture.feature("times").safe
        self.timed = safe(self._timed)
        self._emit_now = safe(self._emit)
        _thread.start_new_thread(self._emit_until_over, ())  # not a threading.Thread: the program counts those

    def stop(self) -> None:
        """Emit the rest. Spans that still run on threads of torch's stay open."""
        self._over.set()
        self._work.set()
        self._stopped.wait()
        self._emit_now()

    # Input from torch's trace and hooks

    def _timed(self, frame: str, part: Timed) -> None:
        with self._lock:
            if part.began:
                self._begin(frame, part)
            else:
                self._spans.end(part, threading.get_ident())
        self._work.set()

    def pass_began(self, applied: Pass) -> None:
        self._pass = applied

    def pass_ended(self, applied: Pass) -> None:
        self._pass = None  # one that was switched off never began

    def began(self, step: str, subject: str) -> None:
        self._timed("", Timed(step, time.time(), True, subject))

    def ended(self, step: str) -> None:
        self._timed("", Timed(step, time.time(), False))

    def submitted(self, build: int, kernel: str) -> None:
        with self._lock:
            if (known := self._in_pool.get(build)) is not None:
                known.what = kernel
                return
            built = Timed("triton compile", time.time(), True, kernel or kernel_builds.kernel_name())
            self._in_pool[build] = self._spans.begin_apart(built)
            self._work.set()

    def returned(self, build: int, seconds: float | None) -> None:
        """A kernel waits in the pool for a free process: it began its seconds before its end."""
        with self._lock:
            if (done := self._in_pool.pop(build, None)) is not None:
                now = time.time()
                done.began = now - seconds if seconds is not None else done.began
                self._spans.close(done, now)
                self._work.set()

    def _begin(self, frame: str, part: Timed) -> None:
        size: Callable[[], int] | None = None
        if part.name == span_names.PASS and self._pass is not None:
            gm, what = self._pass.gm, span_names.pass_named(part.what, self._pass.name)
            part, self._pass = part._replace(what=what), None
            size = (lambda: len(gm.graph.nodes)) if gm is not None else None
        elif part.name in _BUILT and not part.what:
            part = part._replace(what=kernel_builds.kernel_name())
        self._spans.begin(frame, part, threading.get_ident(), size)

    # Output

    def _emit_until_over(self) -> None:
        try:
            self._emit_regularly()
        finally:
            self._stopped.set()

    def _emit_regularly(self) -> None:
        while not self._over.is_set():
            self._work.wait()
            self._over.wait(TICK)
            self._work.clear()
            if not self._over.is_set():
                self._emit_now()

    def _emit(self) -> None:
        """Emit one event of all new spans: those that ended, and those that run."""
        with self._lock:
            now = time.time()
            stacks = self._spans.stacks.values()
            for span in (*(span for stack in stacks for span in stack), *self._in_pool.values()):
                if span.emitted or span.hidden:
                    continue
                if now - span.began >= TICK / 2:
                    self._spans.put(span, None)
                else:
                    self._work.set()  # emitted at the next tick, if it still runs
            self._capture.decided("", *self._spans.taken())
