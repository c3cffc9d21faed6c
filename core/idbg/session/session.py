"""What has the user done with a program so far, and what is being done now? Both front ends drive this alone."""

import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

import idbg
from idbg.accelerators.lint import warnings
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import rules_for
from idbg.accelerators.watch import RulesFile
from idbg.bench.job import BenchJob
from idbg.schema import events
from idbg.schema.bench import BenchCase
from idbg.schema.code import Kernel
from idbg.schema.diff import Comparison
from idbg.schema.errors import AcceleratorError, BadInput
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History
from idbg.session import store
from idbg.session.event_bus import EventBus, Listener
from idbg.session.store import Store
from idbg.session.watchdog import Watchdog, unfinished
from idbg.worker.child import COMMAND
from idbg.worker.client import Ended, Worker
from idbg.worker.protocol import Compile, LowerKernel, MapErrors, Request, WriteRepro


class Session:
    """A program's runs, live (`start`, `run`) or read from disk (`Session.open`). Safe to use from any thread.

    Raises OutputError if its folder cannot be made, AcceleratorError or SettingsError if its rules cannot be had.
    `rules_path` is the target's accelerator as a file. `command` starts the worker.
    `alone`: no screen is to be kept quick meanwhile; the program reads our stdin.
    """

    program: Program
    target: Target  # with the rules in force
    folder: Path
    _worker: Worker | None = None
    _bus: EventBus
    _rules_file: RulesFile

    def __init__(
        self,
        program: Program,
        target: Target,
        *,
        output: Path,
        rules_path: Path | None = None,
        command: Sequence[str] = COMMAND,
        alone: bool = False,
    ) -> None:
        if rules_path is not None:
            target = replace(target, accelerator=str(rules_path))
        text, own_file = rules_for(target)
        kept = Store.create(output, program)
        self._prepare(program, replace(target, rules=text), kept.folder, EventBus(kept))
        self._rules_file.follow(own_file, text)
        self._worker = Worker(self._take, command=command, alone=alone)
        self._bus.emit(events.SessionOpened(version=idbg.__version__, program=program, folder=str(kept.folder)))
        self._warn(text, str(own_file or target.accelerator))

    @classmethod
    def open(cls, folder: Path) -> "Session":
        """A saved session: all that happened in it, and its rules to edit, but no worker. Nothing is written to it.

        Raises OutputError if the folder is not a session that can be read.
        """
        bus = EventBus(past=store.load(folder))
        opened = next((event for event in bus.events if isinstance(event, events.SessionOpened)), None)
        last = bus.history.last
        program = last.program if last else opened.program if opened else Program(path="")
        edits = [event.text for event in bus.events if isinstance(event, events.RulesEdited)]
        target = last.target if last else Target()
        session = cls.__new__(cls)
        session._prepare(program, replace(target, rules=edits[-1]) if edits else target, folder.absolute(), bus)
        return session

    def _prepare(self, program: Program, target: Target, folder: Path, bus: EventBus) -> None:
        self.program, self.target, self.folder, self._bus = program, target, folder, bus
        self._rules_file = RulesFile(self._rules_file_changed, self._rules_file_refused)
        self._changed = threading.Condition()
        self._in_hand: Request | BenchJob | None = None
        self._queue: list[Request | BenchJob] = []
        self._stopping = False  # the job in hand was cancelled; asking again means: kill it
        self._closed = False
        self._refused = False  # the last edit
        self._warned: set[str] = set()  # what was odd in the rules in force
        self._runs = 0
        self._watchdog = Watchdog(self._stop_in_hand)

    # ------------------------------------------------------------- what happened

    @property
    def events(self) -> list[SessionEvent]:
        """Everything so far."""
        return self._bus.events

    @property
    def history(self) -> History:
        return self._bus.history

    @property
    def live(self) -> bool:
        return self._worker is not None

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Pass every later event to `listener`, in order, on a thread of the session; the answer ends that.

        Past events are not repeated: before `start` and `run`, `events` has all of them.
        """
        return self._bus.subscribe(listener)

    # ------------------------------------------------------------- what the user does

    def start(self) -> None:
        """Warm the worker up and watch the rules' file; returns at once."""
        self._live().start()
        self._rules_file.start()

    def run(self, target: Target | None = None, comparison: Comparison | None = None, *, asked: bool = True) -> int:
        """Run the program, for a new target if there is one, and give the run's number at once.

        With a `comparison` it is held against a reference too: the run's `diff`. A run in progress is cancelled, and
        one that still waits is dropped: it never starts. What the user did not ask for (`asked` is false) takes no
        request's place: it waits for a comparison or a benchmark to end, and where a run for this very target is in
        hand or waits, it is that run. Raises AcceleratorError or SettingsError if the new target has no rules and
        names an accelerator that cannot be had.
        """
        worker = self._live()
        if target is not None:
            self._aim(target)
        with self._changed:
            if not asked and (same := self._same_run()) is not None:
                return same
            self._runs += 1
            request = Compile(
                run=self._runs, program=self.program, target=self.target, folder="", comparison=comparison
            )
            waiting = [job for job in self._queue if not isinstance(job, Compile) or (_is_long(job) and not asked)]
            benches = [job for job in waiting if isinstance(job, BenchJob)]  # those take minutes
            self._queue = [*(job for job in waiting if not isinstance(job, BenchJob)), request, *benches]
            if asked or not _is_long(self._in_hand):
                self._give_way(worker)
            self._next()
            return request.run

    def _same_run(self) -> int | None:
        """The number of a run for the target as it is now that is in hand, or waits. The lock is held."""
        jobs = [*self._queue, *([] if self._stopping else [self._in_hand])]
        return next((job.run for job in jobs if isinstance(job, Compile) and job.target == self.target), None)

    def _give_way(self, worker: Worker) -> None:
        """Stop a run or a benchmark in hand, so that a newer run can begin. The lock is held."""
        if isinstance(self._in_hand, BenchJob):
            self._in_hand.stop()
        elif isinstance(self._in_hand, Compile) and not self._stopping:
            self._stopping = True
            worker.cancel()

    def cancel(self) -> None:
        """Stop what is done now and forget what waits; a second time, without waiting for it to stop by itself."""
        with self._changed:
            self._queue.clear()
            self._stop_in_hand()

    def _stop_in_hand(self) -> None:
        """Stop what is done now; what waits stays."""
        worker = self._live()
        with self._changed:
            if isinstance(self._in_hand, BenchJob):
                self._in_hand.stop()
            elif self._in_hand is not None:
                self._stopping = True
                worker.cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is being done and the listeners have heard of all of it; False if that takes longer."""
        with self._changed:
            idle = self._changed.wait_for(lambda: self._in_hand is None and not self._queue, timeout)
        return idle and self._bus.flush(timeout)

    def edit_rules(self, text: str, origin: str = "editor") -> Accelerator | None:
        """Put these rules in force for the next run; a text that is not valid is refused: the last good one stays.

        Where `origin` is a file, the rules are that file's from now on, and it is watched.
        """
        try:
            valid = parse(text)
        except AcceleratorError as error:
            self._refuse(text, origin, error)
            return None
        with self._changed:
            if origin.endswith(".toml") and os.path.isfile(origin):
                self._rules_file.follow(Path(origin).absolute(), text)
                self.target = replace(self.target, accelerator=origin)
            self.target, self._refused = replace(self.target, rules=text), False
            self._bus.emit(events.RulesEdited(text=text, origin=origin))
            self._warn(text, "the rules" if origin == "editor" else origin)
        return valid

    def export_repro(self, node: NodeId | None, rule: str = "") -> None:
        """Write a repro of one violation of the last run, or, with no node, of its failed compile; see ReproEnded."""
        self._live()
        if not self._runs:
            raise BadInput("nothing was run yet, so there is nothing to reproduce", hint="run the program first")
        with self._changed:
            self._queue.append(WriteRepro(run=self._runs, folder="", node=node, rule=rule, rules=self.target.rules))
            self._next()

    def map_errors(self, name: str, index: tuple[int, ...] = ()) -> None:
        """Map the error over a slice of an output of the last run, which was compared; see ErrorsMapped."""
        self._live()
        with self._changed:
            self._queue.append(MapErrors(run=self._runs, name=name, index=index))
            self._next()

    def lower(self, kernel: Kernel) -> None:
        """Find what a kernel of the last run was lowered to, TTIR to SASS or assembly; see KernelLowered."""
        self._live()
        with self._changed:
            self._queue.append(LowerKernel(run=self._runs, kernel=kernel))
            self._next()

    def bench(self, cases: list[BenchCase], database: Path | None = None) -> None:
        """Measure each in processes of its own when nothing else is done; see RowMeasured. Rows go to the database."""
        self._live()
        with self._changed:
            self._queue.append(BenchJob(cases, database, self._take, known=tuple(self.history.rows)))
            self._next()

    def time_kernels(self, case: BenchCase) -> None:
        """Time each kernel of the program on one backend, in a process of its own; see KernelsTimed."""
        self._live()
        with self._changed:
            self._queue.append(BenchJob([case], None, self._take, kernels=True))
            self._next()

    def close(self) -> None:
        """End the worker and all that it started, and the log. Idempotent."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            bench = self._in_hand
        if isinstance(bench, BenchJob):
            bench.stop()
            bench.join()
        self._rules_file.stop()
        if self._worker is not None:
            self._worker.close()
        self._bus.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------- how

    def _live(self) -> Worker:
        if self._worker is None:
            raise BadInput(
                "this session was read from disk: nothing can be run in it",
                hint=f"idbg-tui {self.program.label} runs the program again",
            )
        if self._closed:
            raise BadInput("this session is closed", hint="open a new one")
        return self._worker

    def _aim(self, target: Target) -> None:
        """Take a new target, with the rules of the accelerator that it names where it brings none of its own."""
        text, own_file = rules_for(target)
        with self._changed:
            if not target.rules:
                self._rules_file.follow(own_file, text)
            if text != self.target.rules:
                self._bus.emit(events.RulesEdited(text=text, origin=str(own_file or target.accelerator)))
                self._warn(text, str(own_file or target.accelerator))
            self.target = replace(target, rules=text)

    def _next(self) -> None:
        """Give the worker the oldest job that waits, if it has none. The lock is held."""
        if self._in_hand is not None or not self._queue or self._worker is None or self._closed:
            return
        request = self._queue.pop(0)
        if isinstance(request, BenchJob):
            self._in_hand = request
            request.start()
            return
        if isinstance(request, Compile):
            self._bus.emit(
                events.RunStarted(
                    run=request.run, program=request.program, target=request.target, comparison=request.comparison
                )
            )
            self._watchdog.begin(request.comparison.seconds if request.comparison else 0.0)
        elif isinstance(request, WriteRepro):
            self._bus.emit(events.ReproStarted(run=request.run, node=request.node, rule=request.rule))
        self._in_hand = replace(request, folder=self._repro_folder())
        self._worker.submit(self._in_hand)

    def _repro_folder(self) -> str:
        """Where the worker writes repros: the session's folder, or a temporary one where the disk refuses that."""
        try:
            kept = self._bus.store
            if kept is not None:
                return str(kept.repro_folder())
        except OSError as error:
            self._bus.emit(events.Noted(level="warning", text=f"{error}; repros go to a temporary folder"))
        return tempfile.mkdtemp(prefix="idbg-")

    def _take(self, event: SessionEvent) -> None:
        """What the worker says, on its thread."""
        with self._changed:
            self._watchdog.take(event)
            if isinstance(event, events.RunEnded):
                event = self._watchdog.ended(event)
                run = self._bus.history.runs.get(event.run)
                if run is not None and run.comparison and (event.failure or not run.diff):
                    self._bus.emit(events.Compared(run=run.number, report=unfinished(run, event.failure)))
            self._bus.emit(event)
            if isinstance(event, Ended | events.BenchEnded):
                self._in_hand, self._stopping = None, False
                self._next()
                self._changed.notify_all()

    def _rules_file_changed(self, path: Path, text: str) -> None:
        if text != self.target.rules or self._refused:
            self.edit_rules(text, origin=str(path))

    def _rules_file_refused(self, path: Path, text: str, error: AcceleratorError) -> None:
        self._refuse(text, str(path), error)

    def _warn(self, text: str, origin: str) -> None:
        """Say what is odd in valid rules, once for as long as it stays."""
        found = warnings(text)
        for warning in found:
            if warning.message not in self._warned:
                self._bus.emit(events.Noted(level="warning", text=f"{origin}:{warning.line}: {warning.message}"))
        self._warned = {warning.message for warning in found}

    def _refuse(self, text: str, origin: str, error: AcceleratorError) -> None:
        self._refused = True
        message = f"{error.message}; {error.hint}" if error.hint else error.message
        self._bus.emit(events.RulesRefused(text=text, origin=origin, message=message, line=error.line))


def _is_long(job: Request | BenchJob | None) -> bool:
    """Whether it is what only a user asks for, and may take minutes."""
    return isinstance(job, BenchJob) or (isinstance(job, Compile) and job.comparison is not None)
