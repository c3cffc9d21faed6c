"""Record the time of each part of a compile, nested, while it runs.

Torch traces the begin and end of each part, on any thread. A thread of idbg emits what is running within `TICK`; a
shorter part is emitted once, at its end; parts shorter than `SHORT` are only counted.
"""

import _thread
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch.fx import GraphModule

from idbg.engine.capture.run import RunCapture
from idbg.engine.capture.trace import Timed
from idbg.engine.compat import kernel_builds, spans
from idbg.engine.compat.kernel_builds import observe_builds
from idbg.engine.compat.passes import Pass, observe_passes
from idbg.schema import events
from idbg.schema.decisions.inductor import Span

TICK = 0.12  # seconds; a screen shows what runs within 0.2
SHORT = 0.001  # seconds: most of a compile's hundreds of spans are shorter, and together they are 1 % of it
LIMIT = 10_000  # spans of a run; beyond it only the outermost are counted
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


@dataclass(slots=True, eq=False)
class _Open:
    """A span that is running. `hidden`: it is beyond the limit, or its parent is. `short`: its children that are too
    short to be emitted, by name: when the first began, their seconds, how many, and the subject of the last.
    """

    id: int
    name: str
    what: str
    began: float
    frame: str  # torch's compile id
    thread: int
    parent: "_Open | None"
    gm: GraphModule | None
    nodes: int
    emitted: bool = False
    gone: bool = False  # over, and not emitted
    hidden: bool = False
    short: dict[str, tuple[float, float, int, str]] = field(default_factory=dict)


class Timekeeper:
    """The spans of a run by thread, and those that are not emitted yet. Any thread may call it."""

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture
        self._lock = threading.RLock()
        self._stacks: dict[int, list[_Open]] = {threading.get_ident(): []}
        self._main = self._stacks[threading.get_ident()]
        self._threads = {threading.get_ident(): 0}
        self._in_pool: dict[int, _Open] = {}
        self._last_id = 0
        self._pending: dict[int, Span] = {}
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
                self._end(part)

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
            self._in_pool[build] = self._new("", Timed("triton compile", time.time(), True, kernel), None)
            self._work.set()

    def returned(self, build: int, seconds: float | None) -> None:
        """A kernel waits in the pool for a free process: it began its seconds before its end."""
        with self._lock:
            if (done := self._in_pool.pop(build, None)) is not None:
                now = time.time()
                done.began = now - seconds if seconds is not None else done.began
                self._close(done, now)

    # The spans

    def _begin(self, frame: str, part: Timed) -> None:
        thread = threading.get_ident()
        stack = self._stacks.setdefault(thread, [])
        self._threads.setdefault(thread, len(self._threads))
        stack.append(self._new(frame, part, thread))
        self._work.set()

    def _new(self, frame: str, part: Timed, thread: int | None) -> _Open:
        """`thread` is None for a process of the pool: it is unknown which."""
        stack = self._stacks[thread] if thread is not None else []
        parent = stack[-1] if stack else self._main[-1] if self._main and stack is not self._main else None
        what, gm = part.what, None
        if part.name == spans.PASS and self._pass is not None:
            what, gm, self._pass = spans.pass_named(what, self._pass.name), self._pass.gm, None
        self._last_id += 1
        return _Open(
            id=self._last_id,
            name=part.name,
            what=what or (kernel_builds.kernel_name() if part.name in _BUILT else ""),
            began=part.at,
            frame=frame or (parent.frame if parent else ""),
            thread=self._threads[thread] if thread is not None else len(self._threads) + self._last_id,
            parent=parent,
            gm=gm,
            nodes=len(gm.graph.nodes) if gm is not None else 0,
            hidden=self._last_id > LIMIT or (parent is not None and parent.hidden),
        )

    def _end(self, part: Timed) -> None:
        """A span that began before the recording is unknown; spans inside of one that ends are over too."""
        stack = self._stacks.get(threading.get_ident(), [])
        if not any(span.name == part.name for span in stack):
            return
        while stack:
            span = stack.pop()
            self._close(span, part.at)
            if span.name == part.name:
                return

    def _close(self, span: _Open, at: float) -> None:
        seconds = max(at - span.began, 0.0)
        nodes = (span.nodes, len(span.gm.graph.nodes)) if span.gm is not None else None
        changed = nodes is not None and nodes[0] != nodes[1]
        span.gm = None
        if not span.emitted and (span.hidden or (seconds < SHORT and not changed)):
            self._count(span, seconds)
            return
        self._put(span, seconds, nodes)
        for name, (began, total, times, what) in span.short.items():
            self._last_id += 1
            self._pending[self._last_id] = Span(
                id=self._last_id,
                parent=span.id,
                name=name,
                what=what if times == 1 else "",
                began=began,
                seconds=total,
                frame=self._capture.named(span.frame),
                thread=span.thread,
                times=times,
            )
        self._work.set()

    def _count(self, span: _Open, seconds: float) -> None:
        """Count a span that is too short, or beyond the limit, in its parent, unless that is hidden too."""
        span.gone = True
        if span.parent is None or (span.hidden and span.parent.hidden):
            return
        began, total, times, _ = span.parent.short.get(span.name, (span.began, 0.0, 0, ""))
        span.parent.short[span.name] = began, total + seconds, times + 1, span.what

    # Output

    def _put(self, span: _Open, seconds: float | None, nodes: tuple[int, int] | None = None) -> None:
        parent = span.parent
        while parent is not None and parent.gone:
            parent = parent.parent
        if parent is not None and not parent.emitted:
            self._put(parent, None)
        span.emitted = True
        self._pending[span.id] = Span(
            id=span.id,
            name=span.name,
            what=span.what,
            began=span.began,
            parent=parent.id if parent is not None else 0,
            seconds=seconds,
            frame=self._capture.named(span.frame) if span.frame else "",
            nodes=nodes,
            thread=span.thread,
        )

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
            for span in (*(span for stack in self._stacks.values() for span in stack), *self._in_pool.values()):
                if span.emitted or span.hidden:
                    continue
                if now - span.began >= TICK / 2:
                    self._put(span, None)
                else:
                    self._work.set()  # emitted at the next tick, if it still runs
            spans, self._pending = tuple(self._pending.values()), {}
            if spans:
                self._capture.emit(events.SpansRecorded(run=self._capture.run, spans=spans))
