"""Run requests in the worker process, also if it crashes or hangs.

One thread owns the worker process: only it reads the pipes, signals, reaps and spawns, so that nothing is locked.
"""

import contextlib
import os
import re
import selectors
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from idbg.analysis.crashes import with_site
from idbg.schema import event_log, events
from idbg.schema.errors import WorkerError
from idbg.schema.events import SessionEvent
from idbg.schema.faults import CrashSite
from idbg.schema.programs import Failure, Verdict
from idbg.startup.sitecustomize.passing import captured, note_end
from idbg.worker.child import COMMAND, Child, read
from idbg.worker.output import ChildOutput, Stream
from idbg.worker.protocol import Compile, Ended, Minify, Request, failed

GRACE_SECONDS = 2.0  # between interrupting a run and killing it
SEARCH_GRACE_SECONDS = 120.0  # likewise of a search: the smallest script so far is run once more, in a fresh process
LEAVE_SECONDS = 0.3  # for an idle child to end by itself
DYING_SECONDS = 5.0  # for a child that closed its pipes to exit: a GPU's memory or a core file takes seconds
EXIT_POLL_SECONDS = 0.02
POLL_SECONDS = 0.5  # a child's death is seen at once by its pipe; this is for a pipe that a grandchild holds open

_UNCAUGHT = re.compile(r"^\s*what\(\):\s+(.+)$", re.MULTILINE)  # C++'s message for an uncaught exception

Order = Request | Literal["start", "cancel", "close"]


class Worker:
    """The host's side of the worker process. Every request ends in exactly one event of `Ended`.

    `listener` gets each event on the worker's thread, in order: what a run printed comes before that run's end.
    `alone`: see `Child`. One request at a time: submit the next when the last has ended.
    """

    def __init__(
        self,
        listener: Callable[[SessionEvent], None],
        *,
        command: Sequence[str] = COMMAND,
        alone: bool = False,
        grace: float = GRACE_SECONDS,
        dying: float = DYING_SECONDS,
    ) -> None:
        self._listener, self._command, self._grace, self._dying = listener, command, grace, dying
        self._alone = alone
        self._orders: deque[Order] = deque()
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        self._wake = os.fdopen(wake_write, "wb", buffering=0)
        self._child: Child | None = None
        self._ready = self._wanted = self._closing = self._killed = self._spoiled = False
        self._job: Request | None = None
        self._sent_at: float | None = None
        self._deadline: float | None = None
        self._gone_by: float | None = None  # it closed its pipes: when to end it if it has not exited by itself
        self._replaced: events.RunEnded | None = None  # another program is in its place, and not over yet
        self._captured: set[str] = set()  # processes, before it was replaced
        self._refusal = ""  # why the child cannot start, as it says itself
        self._output = ChildOutput()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, name="idbg-worker", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------- any thread

    def start(self) -> None:
        """Spawn the process, so that it is warm when the first request comes."""
        self._order("start")

    def submit(self, request: Request) -> None:
        """Submit a request; returns at once. The listener gets the event of its end."""
        self._order(request)

    def cancel(self) -> None:
        """Stop the current request: interrupt it, and kill it after a grace period, or at the second call."""
        self._order("cancel")

    def close(self) -> None:
        """End the process and its whole group. Idempotent."""
        self._order("close")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _order(self, order: Order) -> None:
        self._orders.append(order)
        with contextlib.suppress(ValueError, OSError):  # closed already: there is nobody to wake
            self._wake.write(b".")

    # ------------------------------------------------------------- the worker's thread

    def _serve(self) -> None:
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._handle_orders)
        while not self._closing:
            for key, _ in self._selector.select(self._timeout()):
                key.data()
            self._tick()
        self._leave()

    def _timeout(self) -> float | None:
        waits = [POLL_SECONDS if self._child else None, self._output.wait()]
        if self._gone_by is not None:
            waits.append(EXIT_POLL_SECONDS)
        if self._deadline is not None:
            waits.append(max(self._deadline - time.monotonic(), 0.0))
        return min((wait for wait in waits if wait is not None), default=None)

    def _handle_orders(self) -> None:
        read(self._wake_read)
        while self._orders:
            match self._orders.popleft():
                case "start":
                    self._wanted = True
                case "cancel":
                    self._cancel()
                case "close":
                    self._closing = True
                    return
                case request:
                    assert self._job is None, "one request at a time"
                    self._job = request

    def _tick(self) -> None:
        if self._output.wait() == 0.0:
            self._pass_output()
        if self._child is not None and self._deadline is not None and time.monotonic() >= self._deadline:
            self._killed = True
            self._child.end()
        if self._child is not None and self._gone_by is not None and time.monotonic() >= self._gone_by:
            self._child.end()
        if self._spoiled:
            self._replace()
        if self._child is not None and self._child.exited():
            self._reap()
        if self._child is None and not self._closing and (self._wanted or self._job is not None):
            self._spawn()
        if self._ready and self._gone_by is None and self._job is not None and self._sent_at is None:
            self._send(self._job)

    def _spawn(self) -> None:
        self._wanted = self._ready = self._killed = self._spoiled = False
        self._gone_by, self._refusal = None, ""
        try:
            self._child = child = Child(self._command, alone=self._alone)
        except OSError as error:
            self._lost(f"could not be started: {error}", "check that this Python can start processes: idbg info")
            return
        self._output = ChildOutput()
        watched: list[tuple[int, Callable[[], None]]] = [
            (child.events, self._read_events),
            (child.stdout, lambda: self._read_output("stdout", child.stdout)),
            (child.stderr, lambda: self._read_output("stderr", child.stderr)),
        ]
        for fd, callback in watched:
            self._selector.register(fd, selectors.EVENT_READ, callback)

    def _send(self, request: Request) -> None:
        self._pass_output()
        self._output.restart(request.run if isinstance(request, Compile) else 0)
        self._sent_at = time.monotonic()
        if self._child is not None:
            self._child.send(request)

    def _cancel(self) -> None:
        if self._job is None or self._child is None or self._sent_at is None:
            if self._job is not None:
                self._end_job(_cancelled())
        elif self._deadline is None:
            self._deadline = time.monotonic() + (SEARCH_GRACE_SECONDS if isinstance(self._job, Minify) else self._grace)
            self._child.signal(signal.SIGINT)
        else:
            self._deadline = time.monotonic()

    # ------------------------------------------------------------- what the child says

    def _read_output(self, stream: Stream, fd: int) -> None:
        chunk = read(fd)
        if chunk:
            self._output.feed(stream, chunk)
        elif chunk == b"":
            self._selector.unregister(fd)

    def _read_events(self) -> None:
        child = self._child
        if child is None:
            return
        lines = child.lines()
        if lines is None:
            self._selector.unregister(child.events)  # it is dying, or a program closed the descriptor: it is lost
            self._gone_by = None if self._replaced else time.monotonic() + self._dying
            return
        if lines:
            self._pass_output()  # which was read before these events
        for line in lines:
            try:
                event = event_log.decode(line)
            except msgspec.DecodeError as error:
                event = events.Noted(level="error", text=f"the worker wrote a line that is not an event: {error}")
            if event is not None:
                self._take(event)

    def _take(self, event: SessionEvent) -> None:
        if isinstance(event, events.WorkerStarted):
            self._ready, self._refusal = True, ""
        elif isinstance(event, events.Noted) and event.level == "error" and not self._ready:
            self._refusal = event.text  # `_lost` reports it
            return
        if isinstance(event, events.RunEnded) and event.replaced:
            self._replaced, self._captured = event, self._processes()
        elif not isinstance(event, Ended):
            self._listener(event)
        elif self._job is not None:
            self._finish(event)

    def _finish(self, event: Ended) -> None:
        """End the current request; its output, which is in the pipes by now, comes first."""
        self._drain_output()
        self._pass_output()
        for rest in self._output.rest():
            self._listener(rest)
        self._output.restart(0)
        # replaced in `_tick`: what is selected now may still be to read
        took_process = isinstance(event, events.RunEnded) and event.took_process
        took_process |= isinstance(event, events.KernelEdited)  # which may have written anywhere in its memory
        self._spoiled = self._spoiled or self._deadline is not None or took_process
        self._job = self._sent_at = self._deadline = self._replaced = None
        self._listener(event)

    def _drain_output(self) -> None:
        if self._child is not None:
            self._child.drain(self._child.stdout, lambda data: self._output.feed("stdout", data))
            self._child.drain(self._child.stderr, lambda data: self._output.feed("stderr", data))

    def _pass_output(self) -> None:
        for event in self._output.take():
            self._listener(event)

    # ------------------------------------------------------------- the child's end

    def _reap(self) -> None:
        """The child has ended: read its last events, clean up, and report it."""
        child = self._child
        if child is None:
            return
        site = child.crash_site()
        child.end()
        for line in child.remaining_lines():
            with contextlib.suppress(msgspec.DecodeError):  # the last line may be torn
                if (event := event_log.decode(line)) is not None:
                    self._take(event)
        self._drain_output()
        self._pass_output()
        was_ready = self._ready
        self._let_go(child)
        if self._killed or self._spoiled or self._deadline is not None:
            self._wanted = True
            if self._killed:
                self._listener(events.Noted(level="info", text="the worker did not stop when asked, and was killed"))
            self._end_job(_cancelled())
        elif self._replaced is not None and child.process.returncode >= 0:
            self._finish(self._with_end_of_other(self._replaced, child))
        elif was_ready:
            self._wanted = self._job is not None
            cause = child.cause() + (f" in {site.kernel}" if site and site.kernel else "")
            self._lost(cause, _hint(cause, self._output.last()), keeps_job=self._sent_at is None, site=site)
        else:
            why, _, hint = self._refusal.partition("\n")
            cause = f"could not start: {why or child.cause()}"
            self._lost(cause, hint or _hint(cause, self._output.last()))

    def _with_end_of_other(self, event: events.RunEnded, other: Child) -> events.RunEnded:
        """The end of a run of which another program took the process: as that ended, and with what it compiled."""
        status, now = other.process.returncode, time.time()
        if isinstance(self._job, Compile) and self._job.session:
            with contextlib.suppress(OSError):  # it compiled nothing
                note_end(self._job.session, other.process.pid, status << 8)
        children = event.children + len(self._processes() - self._captured)
        verdict: Verdict = "compiled" if event.verdict == "empty" and children else event.verdict
        seconds = event.seconds + now - event.at
        return replace(event, at=now, seconds=seconds, exit_status=status, children=children, verdict=verdict)

    def _processes(self) -> set[str]:
        """The processes of the run's session that were captured so far."""
        return captured(self._job.session) if isinstance(self._job, Compile) and self._job.session else set()

    def _let_go(self, child: Child) -> None:
        for fd in (child.events, child.stdout, child.stderr):
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
        child.close()
        self._child, self._ready, self._gone_by = None, False, None

    def _replace(self) -> None:
        """Replace the process: an interrupted compile leaves broken builds in torch's code caches."""
        self._spoiled = False
        if self._child is not None:
            self._child.end()
            self._let_go(self._child)
            self._wanted = True

    def _lost(self, cause: str, hint: str, *, keeps_job: bool = False, site: CrashSite | None = None) -> None:
        """The worker ended unexpectedly. After a failed start it is spawned again only for the next request.

        A job that was not sent yet is kept for the next process.
        """
        from idbg.format.limits import memory_limit  # no screen needs it before

        hint = "; ".join(filter(None, (hint, memory_limit())))
        self._listener(events.WorkerDied(cause=cause, last_output=self._output.last()))
        message = f"the worker {'was ' if cause.startswith('killed') else ''}{cause}"
        if self._job is None or keeps_job:
            self._listener(events.Noted(level="error", text=f"{message}: {hint}"))
        else:
            uncaught = _UNCAUGHT.search(self._output.last())
            message += f": {uncaught[1]}" if uncaught and "SIGABRT" in cause else ""
            self._end_job(with_site(WorkerError(message, hint=hint).failure(), site))

    def _end_job(self, failure: Failure) -> None:
        if self._job is None:
            return
        seconds = 0.0 if self._sent_at is None else time.monotonic() - self._sent_at
        self._finish(failed(self._job, failure, seconds))

    def _leave(self) -> None:
        if self._child is not None:
            idle = self._ready and self._job is None
            self._child.end(patience=LEAVE_SECONDS if idle else 0.0)
            self._drain_output()
            self._pass_output()
            self._child.close()
            self._child = None
        self._end_job(_cancelled())
        self._selector.close()
        self._wake.close()
        os.close(self._wake_read)


def _cancelled() -> Failure:
    return Failure(kind="cancelled", message="cancelled", hint="run it again when you like")


def _hint(cause: str, last_output: str) -> str:
    if "No module named 'torch'" in last_output:
        return f"install torch for {sys.executable}: pip install torch"
    if "SIGKILL" in cause:
        return "something killed it, most often the kernel for want of memory: see dmesg; then run it again"
    if "could not" in cause:
        return "what it printed is in the log; then run it again"
    if " in " in cause:
        return "the kernel, or what it is given, is wrong: see its code; the next run has a process of its own"
    return "the program, torch or a library ended the process; what it printed is in the log: fix it, and run it again"
