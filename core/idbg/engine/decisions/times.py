"""Where does the time of this compile go? What torch times, nested as it happens, and told while it lasts.

Torch says as each part of a compile begins and ends, on whichever thread. What goes on is told within `TICK` by a
thread of ours; what is over too soon for that is told once, at its end; what takes less than `SHORT` only as a count.
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
from idbg.engine.compat.kernel_builds import builds_heard
from idbg.engine.compat.passes import Pass, observers_heard
from idbg.engine.decisions.hearing import harmless
from idbg.schema import events
from idbg.schema.decisions.times import Span

TICK = 0.12  # seconds; a screen is to show within 0.2 what goes on, and a batch each 0.1 is no flood
SHORT = 0.001  # seconds: most of a compile's hundreds of spans are shorter, and together they are a percent of it
LIMIT = 10_000  # spans of a run; then only what is outermost is counted
_BUILT = frozenset({"c++ compile", "triton compile"})


@contextmanager
def heard(capture: RunCapture) -> Iterator[None]:
    """While it lasts, all that torch times is told as spans."""
    keeper = Timekeeper(capture)
    capture.timekeeper = keeper.timed
    with observers_heard(keeper.pass_began, keeper.pass_ended), builds_heard(keeper):
        try:
            yield
        finally:
            keeper.stop()
            capture.timekeeper = None


@dataclass(slots=True, eq=False)
class _Open:
    """A span that lasts. `hidden`: beyond the limit, or in such a one. `short`: by name, when the first of those began
    that were too short to be told, their seconds, how many, and what the last was of.
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
    told: bool = False
    gone: bool = False  # over, and not told
    hidden: bool = False
    short: dict[str, tuple[float, float, int, str]] = field(default_factory=dict)


class Timekeeper:
    """What goes on in a run, by thread, and what of it is still to be told. Any thread may call it."""

    def __init__(self, capture: RunCapture) -> None:
        self._capture = capture
        self._lock = threading.RLock()
        self._stacks: dict[int, list[_Open]] = {threading.get_ident(): []}
        self._main = self._stacks[threading.get_ident()]
        self._threads = {threading.get_ident(): 0}
        self._in_pool: dict[int, _Open] = {}
        self._last = 0  # the last id
        self._untold: dict[int, Span] = {}
        self._pass: Pass | None = None  # that begins next
        self._work, self._over, self._silent = threading.Event(), threading.Event(), threading.Event()
        safe = harmless(capture, "the times of this compile")
        self.timed = safe(self._timed)
        self.pass_began = safe(self._pass_began)
        self.pass_ended = safe(self._pass_ended)
        self.began = safe(self._began_here)
        self.ended = safe(self._ended_here)
        self.handed_over = safe(self._handed_over)
        self.came_back = safe(self._came_back)
        self._tell_now = safe(self._tell)
        _thread.start_new_thread(self._tell_until_over, ())  # none of threading's: the program counts those

    def stop(self) -> None:
        """Tell what is left. What still goes on, on threads of torch's, is left open."""
        self._over.set()
        self._work.set()
        self._silent.wait()
        self._tell_now()

    # What is heard

    def _timed(self, frame: str, part: Timed) -> None:
        with self._lock:
            if part.began:
                self._begin(frame, part)
            else:
                self._end(part)

    def _pass_began(self, applied: Pass) -> None:
        self._pass = applied

    def _pass_ended(self, applied: Pass) -> None:
        self._pass = None  # one that was switched off never began

    def _began_here(self, name: str, what: str) -> None:
        self._timed("", Timed(name, time.time(), True, what))

    def _ended_here(self, name: str) -> None:
        self._timed("", Timed(name, time.time(), False))

    def _handed_over(self, build: int, kernel: str) -> None:
        with self._lock:
            if (known := self._in_pool.get(build)) is not None:
                known.what = kernel
                return
            self._in_pool[build] = self._new("", Timed("triton compile", time.time(), True, kernel), None)
            self._work.set()

    def _came_back(self, build: int, seconds: float | None) -> None:
        """In the pool a kernel waits until a process is free: it began when it took its seconds before its end."""
        with self._lock:
            if (done := self._in_pool.pop(build, None)) is not None:
                now = time.time()
                done.began = now - seconds if seconds is not None else done.began
                self._close(done, now)

    # What it comes to

    def _begin(self, frame: str, part: Timed) -> None:
        thread = threading.get_ident()
        stack = self._stacks.setdefault(thread, [])
        self._threads.setdefault(thread, len(self._threads))
        stack.append(self._new(frame, part, thread))
        self._work.set()

    def _new(self, frame: str, part: Timed, thread: int | None) -> _Open:
        """`thread` is None of a process of the pool: nobody knows which."""
        stack = self._stacks[thread] if thread is not None else []
        parent = stack[-1] if stack else self._main[-1] if self._main and stack is not self._main else None
        what, gm = part.what, None
        if part.name == spans.PASS and self._pass is not None:
            what, gm, self._pass = spans.pass_named(what, self._pass.name), self._pass.gm, None
        self._last += 1
        return _Open(
            id=self._last,
            name=part.name,
            what=what or (kernel_builds.what() if part.name in _BUILT else ""),
            began=part.at,
            frame=frame or (parent.frame if parent else ""),
            thread=self._threads[thread] if thread is not None else len(self._threads) + self._last,
            parent=parent,
            gm=gm,
            nodes=len(gm.graph.nodes) if gm is not None else 0,
            hidden=self._last > LIMIT or (parent is not None and parent.hidden),
        )

    def _end(self, part: Timed) -> None:
        """Of a span that began before we listened nothing is known; what is open in one that ends is over too."""
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
        if not span.told and (span.hidden or (seconds < SHORT and not changed)):
            self._count(span, seconds)
            return
        self._put(span, seconds, nodes)
        for name, (began, total, times, what) in span.short.items():
            self._last += 1
            self._untold[self._last] = Span(
                id=self._last,
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
        """Too short to be told, or one too many: the outermost of those is counted in what it is in."""
        span.gone = True
        if span.parent is None or (span.hidden and span.parent.hidden):
            return
        began, total, times, _ = span.parent.short.get(span.name, (span.began, 0.0, 0, ""))
        span.parent.short[span.name] = began, total + seconds, times + 1, span.what

    # What is told

    def _put(self, span: _Open, seconds: float | None, nodes: tuple[int, int] | None = None) -> None:
        parent = span.parent
        while parent is not None and parent.gone:
            parent = parent.parent
        if parent is not None and not parent.told:
            self._put(parent, None)
        span.told = True
        self._untold[span.id] = Span(
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

    def _tell_until_over(self) -> None:
        try:
            self._tell_regularly()
        finally:
            self._silent.set()

    def _tell_regularly(self) -> None:
        while not self._over.is_set():
            self._work.wait()
            self._over.wait(TICK)
            self._work.clear()
            if not self._over.is_set():
                self._tell_now()

    def _tell(self) -> None:
        """One event of all that is new: what ended, and what goes on."""
        with self._lock:
            now = time.time()
            for span in (*(span for stack in self._stacks.values() for span in stack), *self._in_pool.values()):
                if span.told or span.hidden:
                    continue
                if now - span.began >= TICK / 2:
                    self._put(span, None)
                else:
                    self._work.set()  # told by the next tick, if it lasts
            told, self._untold = tuple(self._untold.values()), {}
            if told:
                self._capture.emit(events.SpansRecorded(run=self._capture.run, spans=told))
