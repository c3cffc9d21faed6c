"""Queue the jobs of a session: one runs at a time, and some give way to others."""

import tempfile
import threading
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.diff import Comparison, DiffReport, SideResult
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Failure, Program, Target
from idbg.schema.remarks import NoFloat64
from idbg.schema.runs import Run
from idbg.session.event_bus import EventBus
from idbg.worker.background import OwnProcesses
from idbg.worker.client import Worker
from idbg.worker.crash_site import in_run
from idbg.worker.protocol import Compile, EditKernel, Ended, FindOwner, Minify, Request, WriteRepro

SessionJob = Request | OwnProcesses


class JobQueue:
    """The jobs of a live session, one at a time: requests are the worker's, benchmarks and bisections run in
    processes of their own.

    Their events go to the bus. Safe to use from any thread; nothing here waits but `wait` and `close`. `command`
    and `alone` are the worker's.
    """

    def __init__(self, bus: EventBus, *, command: Sequence[str], alone: bool, runs: int = 0) -> None:
        self.runs = runs  # the number of the last run
        self.closed = False
        self._bus = bus
        self._changed = threading.Condition()
        self._in_hand: SessionJob | None = None
        self._waiting: list[SessionJob] = []
        self._stopping = False  # the job in hand was cancelled; asking again means: kill it
        self._spare_folder = ""
        self._watchdog = Watchdog(self.stop)
        self._worker = Worker(self.tell, command=command, alone=alone)

    def start(self) -> None:
        """Warm the worker up; returns at once."""
        self._worker.start()

    def run(self, program: Program, target: Target, comparison: Comparison | None, *, by_user: bool) -> int:
        """The number of a run of the program for the target, which begins as soon as it may: see `Session.run`."""
        with self._changed:
            if not by_user and (same := self._same_run(target)) is not None:
                return same
            self.runs += 1
            request = Compile(run=self.runs, program=program, target=target, folder="", comparison=comparison)
            kept = [job for job in self._waiting if not isinstance(job, Compile) or (_is_long(job) and not by_user)]
            benches = [job for job in kept if isinstance(job, OwnProcesses)]  # those take minutes
            self._waiting = [*(job for job in kept if not isinstance(job, OwnProcesses)), request, *benches]
            if by_user or not _is_long(self._in_hand):
                self._give_way()
            self._next()
            return request.run

    def add(self, job: SessionJob) -> None:
        """Do this job after all earlier ones."""
        with self._changed:
            self._waiting.append(job)
            self._next()

    def stop(self) -> None:
        """Stop the current job, at the second call without waiting for it; waiting jobs stay."""
        with self._changed:
            if isinstance(self._in_hand, OwnProcesses):
                self._in_hand.stop()
            elif self._in_hand is not None:
                self._stopping = True
                self._worker.cancel()

    def cancel(self) -> None:
        """Stop what is done now, and forget what waits."""
        with self._changed:
            self._waiting.clear()
            self.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is being done and nothing waits; False if that takes longer than so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._in_hand is None and not self._waiting, timeout)

    def close(self) -> None:
        """Forget what waits, and end what is done now with the worker and all that it started. Idempotent."""
        with self._changed:
            self.closed = True
            self._waiting.clear()
            bench = self._in_hand
        if isinstance(bench, OwnProcesses):
            bench.stop()
            bench.join()
        self._worker.close()

    def tell(self, event: SessionEvent) -> None:
        """Handle an event of the current job, on its thread; the next job begins at its end."""
        with self._changed:
            self._watchdog.take(event)
            event = self._placed(event)
            if isinstance(event, events.RunEnded):
                event = self._watchdog.ended(event)
                run = self._bus.history.runs.get(event.run)
                if run is not None and run.comparison and (event.failure or not run.diff):
                    self._bus.emit(events.Compared(run=run.number, report=unfinished(run, event.failure)))
            self._bus.emit(event)
            if isinstance(event, Ended | events.BenchEnded | events.BisectEnded):
                self._in_hand, self._stopping = None, False
                self._next()
                self._changed.notify_all()

    # ------------------------------------------------------------- the lock is held

    def _placed(self, event: SessionEvent) -> SessionEvent:
        """The event; of a crash with what the run's records tell of its launch."""
        run = self._bus.history.runs.get(getattr(event, "run", 0))
        if run is None:
            return event
        if isinstance(event, events.RunEnded) and event.failure is not None:
            return replace(event, failure=in_run(event.failure, run))
        if isinstance(event, events.SideEnded):
            return replace(event, side=_side_in(event.side, run))
        if isinstance(event, events.Compared):
            sides = tuple(_side_in(side, run) for side in event.report.sides)
            return replace(event, report=replace(event.report, sides=sides))
        return event

    def _same_run(self, target: Target) -> int | None:
        """The number of a run for this very target that is in hand or waits; None where there is none."""
        jobs = [*self._waiting, *([] if self._stopping else [self._in_hand])]
        return next((job.run for job in jobs if isinstance(job, Compile) and job.target == target), None)

    def _give_way(self) -> None:
        """Stop a run or a benchmark in hand, so that a newer run can begin."""
        if isinstance(self._in_hand, OwnProcesses) or (isinstance(self._in_hand, Compile) and not self._stopping):
            self.stop()

    def _next(self) -> None:
        """Begin the oldest job that waits, if none is in hand."""
        if self._in_hand is not None or not self._waiting or self.closed:
            return
        job = self._waiting.pop(0)
        if isinstance(job, OwnProcesses):
            self._in_hand = job
            job.start()
            return
        self._in_hand = request = self._begun(job)
        self._worker.submit(request)

    def _begun(self, request: Request) -> Request:
        """Emit the event of the request's beginning; returns the request for the worker."""
        match request:
            case Compile(run=run, program=program, target=target, comparison=comparison):
                self._bus.emit(events.RunStarted(run=run, program=program, target=target, comparison=comparison))
                self._watchdog.begin(comparison.seconds if comparison else 0.0)
                store = self._bus.store
                session = str(store.folder) if store is not None else ""
                return replace(request, folder=self._repro_folder(), session=session)
            case WriteRepro():
                self._bus.emit(events.ReproStarted(run=request.run, node=request.node, rule=request.rule))
                return replace(request, folder=self._repro_folder())
            case Minify():
                self._bus.emit(events.MinifyStarted(run=request.run, sought=request.sought))
                return replace(request, folder=self._repro_folder())
            case FindOwner():
                self._bus.emit(events.OwnerStarted(run=request.run, launch=request.launch))
                return replace(request, folder=self._repro_folder())
            case EditKernel(kernel=kernel):
                begun = events.KernelEditing(
                    run=request.run, frame=kernel.frame, part=kernel.part, name=kernel.name, version=request.version
                )
                self._bus.emit(begun)
                return request
            case _:
                return request

    def _repro_folder(self) -> str:
        """The folder for repros: the session's, or a temporary one if that cannot be written."""
        try:
            if (store := self._bus.store) is not None:
                return str(store.repro_folder())
        except OSError as error:
            self._bus.emit(events.Noted(level="warning", text=f"{error}; repros go to a temporary folder"))
        self._spare_folder = self._spare_folder or tempfile.mkdtemp(prefix="idbg-")
        return self._spare_folder


def _is_long(job: SessionJob | None) -> bool:
    """Whether it is what only a user asks for, and may take minutes."""
    return isinstance(job, OwnProcesses) or (isinstance(job, Compile) and job.comparison is not None)


def _side_in(side: SideResult, run: Run) -> SideResult:
    return side if side.failure is None else replace(side, failure=in_run(side.failure, run))


class Watchdog:
    """Calls `stop` when a side of the run in hand takes longer than the comparison gives it."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._timer: threading.Timer | None = None
        self._seconds = 0.0
        self.late = ""  # the side that was stopped

    def begin(self, seconds: float) -> None:
        """Expect a run whose sides may each take `seconds`."""
        self._seconds, self.late = seconds, ""

    def take(self, event: SessionEvent) -> None:
        """Handle an event of the run: the start of a side starts the timer, its end stops it."""
        if isinstance(event, events.SideStarted | events.SideEnded | events.RunEnded) and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if isinstance(event, events.SideStarted):
            self._timer = threading.Timer(self._seconds, self._over, (event.side,))
            self._timer.daemon = True
            self._timer.start()

    def _over(self, side: str) -> None:
        self.late = side
        self._stop()

    def ended(self, event: events.RunEnded) -> events.RunEnded:
        """The run's end; where the watchdog stopped it, with that as the failure."""
        if not self.late or event.failure is None:
            return event
        message = f"the side {self.late} took longer than {self._seconds:g} s, and was stopped"
        hint = "give it more (--timeout), or see in the log what it waits for"
        return replace(event, failure=Failure(kind="worker", type="Timeout", message=message, hint=hint))


def unfinished(run: Run, failure: Failure | None) -> DiffReport:
    """The report of a comparison whose program did not come to its end: what is known, and `failure`."""
    assert run.comparison is not None
    known = run.diff or DiffReport(
        test=run.backend,
        reference=run.comparison.reference,
        verdict="waiting",
        mode="tolerance" if run.comparison.by_tolerance else "float64",
        float64_missing=NoFloat64("not run"),
    )
    cancelled = failure is not None and failure.kind == "cancelled"
    if known.verdict == "waiting" and not cancelled:  # it waits no more
        known = replace(known, verdict="error")
    if not run.side:  # what was begun is compared
        return replace(known, failure=failure)
    sides = (*run.sides, SideResult(run.side, failure=failure))
    stands = cancelled or known.verdict == "failed"
    return replace(known, verdict=known.verdict if stands else "error", sides=sides, failure=failure)
