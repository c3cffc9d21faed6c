"""A session: a program, its runs, and the actions on them. Both front ends use only this."""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec.structs import replace

import idbg
from idbg.accelerators.model import Accelerator
from idbg.accelerators.registry import rules_for
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.analysis.decisions.times import typical
from idbg.analysis.decisions.trials import trial
from idbg.analysis.kernel_definition import check_edit
from idbg.bench.job import BenchJob
from idbg.config.settings import ALL, Keeping
from idbg.schema import events
from idbg.schema.bench import BenchCase
from idbg.schema.bisection import Question
from idbg.schema.code import Kernel
from idbg.schema.diff import Comparison, DiffReport
from idbg.schema.errors import BadInput
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import NodeId
from idbg.schema.html_repr import html_of
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Budget, Sought
from idbg.schema.runs import History, Run
from idbg.session import files, import_process, launch, removal, summaries
from idbg.session.event_bus import EventBus, Listener
from idbg.session.following import TICK, LogFollower, LogTail
from idbg.session.past import asks_the_same, phases_of_earlier, seconds_of_earlier
from idbg.session.queue import JobQueue
from idbg.session.reading import load, read
from idbg.session.rules import RulesInForce
from idbg.session.store import Store
from idbg.worker.child import COMMAND
from idbg.worker.protocol import EditKernel, FindOwner, LowerKernel, MapErrors, Minify, WriteRepro

if TYPE_CHECKING:
    from idbg.session.process_watch import ProcessWatch

FIRST_EVENTS = 200
"""Events of a long log that are read before it is shown."""
FIRST_WAIT = 5.0  # seconds: a trace of which nothing came by then is shown empty, and filled later


class Session:
    """A program's runs, live (`start`, `run`) or read from disk (`Session.open`). Safe to use from any thread.

    Raises OutputError if its folder cannot be made, AcceleratorError or SettingsError if its rules cannot be had.
    `rules_path` is the target's accelerator as a file. `command` starts the worker.
    `alone`: no screen is to be kept quick meanwhile; the program reads our stdin.
    `keeping`: which of the sessions in `output` go as this one begins, and how large it may become.
    `saved`: what happened in the session whose folder `output` is: it is replayed from these events, and nothing is
    written to it or run in it; with `store` it goes on there.
    """

    def __init__(
        self,
        program: Program,
        target: Target,
        *,
        output: Path,
        rules_path: Path | None = None,
        command: Sequence[str] = COMMAND,
        alone: bool = False,
        saved: Sequence[SessionEvent] | None = None,
        store: Store | None = None,
        keeping: Keeping = ALL,
    ) -> None:
        self.program = program
        self._jobs: JobQueue | None = None
        self._past: dict[str, list[dict[str, float]]] = {}  # by backend
        self._processes: ProcessWatch | None = None
        self._follower: LogFollower | None = None  # of a log that another process writes
        self.arriving = ""
        """What goes on where events come that are not of a worker of its own: "importing", "running", "reading"."""
        self._end_writer: Callable[[], None] = lambda: None
        self._source = ""  # the trace that it was imported from
        if saved is not None:
            self.folder = output.absolute()
            self._source = next((event.source for event in saved if isinstance(event, events.SessionOpened)), "")
            self._bus = EventBus(store, past=saved)
            self._rules = RulesInForce(target, self._bus)
            if store is not None:
                last = max(self.history.runs, default=0)
                self._jobs = JobQueue(self._bus, command=command, alone=alone, runs=last)
            return
        if program.is_trace:
            raise _not_here()
        if rules_path is not None:
            target = replace(target, accelerator=str(rules_path))
        text, own_file = rules_for(target)
        kept = Store.create(output, program, keeping.session_size)
        self.folder = kept.folder
        self._bus = EventBus(kept)
        self._rules = RulesInForce(replace(target, rules=text), self._bus)
        self._jobs = JobQueue(self._bus, command=command, alone=alone)
        self._bus.emit(events.SessionOpened(version=idbg.__version__, program=program, folder=str(kept.folder)))
        self._rules.follow(own_file)
        removal.begin(output.absolute(), keeping)

    @classmethod
    def open(cls, folder: Path) -> "Session":
        """A saved session: all that happened in it, and its rules to edit, but no worker. Nothing is written to it.

        Raises OutputError if the folder is not a session that can be read.
        """
        return cls._of_saved(folder, load(folder))

    @classmethod
    def follow(cls, folder: Path) -> "Session":
        """The same of a session that may still be written: later events come too. Raises like `open`."""
        if not files.is_live(folder):
            return cls.open(folder)
        tail = LogTail(folder)
        session = cls._of_saved(folder, list(tail.more()))
        session._follower = LogFollower(tail, session._bus.emit)
        session.arriving = "running"
        return session

    @classmethod
    def resume(cls, folder: Path, *, command: Sequence[str] = COMMAND, keeping: Keeping = ALL) -> "Session":
        """A saved session that goes on: what is run in it now is added to its log. See `open`, and `Store.resume`."""
        saved, missing = read(folder)
        if any(isinstance(event, events.SessionOpened) and event.source for event in saved):
            raise _not_here()
        store = Store.resume(folder, saved, missing, keeping.session_size)
        return cls._of_saved(folder, saved, store, command)

    @classmethod
    def importing(cls, source: Path, output: Path, accelerator: str = "") -> "Session":
        """The session of a trace, which another process imports meanwhile: its events come as they are read.

        Raises BadInput where nothing can be imported.
        """
        begun = import_process.start(source, output, accelerator)
        session = cls.streamed(begun.folder, lambda: begun.process.poll() is None)
        session._source = str(source)
        session.arriving = "importing"
        session._end_writer = begun.end
        return session

    @classmethod
    def streamed(cls, folder: Path, is_written: Callable[[], bool] = lambda: False) -> "Session":
        """A saved session whose first events are there at once, and the others as they are read: of a long log that
        takes seconds. Raises OutputError where there is no log.
        """
        tail = LogTail(folder)
        first = list(islice(tail.more(), FIRST_EVENTS))
        deadline = time.monotonic() + FIRST_WAIT
        while not first and is_written() and time.monotonic() < deadline:
            time.sleep(TICK / 4)
            first = list(islice(tail.more(), FIRST_EVENTS))
        session = cls._of_saved(folder, first)
        session._follower = LogFollower(tail, session._bus.emit)
        session.arriving = "reading"
        return session

    @classmethod
    def of_job(cls, command: Sequence[str], program: Program, place: launch.JobSession) -> "Session":
        """The session of a job of ranks, which this command starts, and which ends with the session.

        Raises OutputError if it cannot be written, BadInput if the command cannot be started.
        """
        job = launch.Job(command, program, place, stdout=None)
        threading.Thread(target=job.wait_and_end, name="idbg-job", daemon=True).start()
        session = cls.follow(job.folder)
        session._end_writer = job.end
        return session

    @classmethod
    def _of_saved(
        cls,
        folder: Path,
        saved: list[SessionEvent],
        store: Store | None = None,
        command: Sequence[str] = COMMAND,
    ) -> "Session":
        opened = next((event for event in saved if isinstance(event, events.SessionOpened)), None)
        started = [event for event in saved if isinstance(event, events.RunStarted)]
        last = max(started, key=lambda event: event.run, default=None)
        program = last.program if last else opened.program if opened else Program(path="")
        target = last.target if last else Target()
        edits = [event.text for event in saved if isinstance(event, events.RulesEdited)]
        target = replace(target, rules=edits[-1]) if edits else target
        session = cls(program, target, output=folder, saved=saved, store=store, command=command, alone=True)
        summaries.add_outcomes(folder, session.history)
        return session

    # ------------------------------------------------------------- what happened

    @property
    def target(self) -> Target:
        """The target of the next run, with the rules in force."""
        return self._rules.target

    @property
    def events(self) -> list[SessionEvent]:
        """Everything so far."""
        return self._bus.events

    @property
    def history(self) -> History:
        """The state after the events so far; it changes with each event."""
        return self._bus.history

    @property
    def live(self) -> bool:
        """Whether something can be run in it: it was not read from disk."""
        return self._jobs is not None

    def typical(self) -> dict[str, float]:
        """Seconds that each phase of a compile of this program for this backend takes: the median of the runs before,
        in this session and those beside it. Those are read once, which takes some tens of milliseconds.
        """
        backend = self.target.backend
        if backend not in self._past:
            self._past[backend] = phases_of_earlier(self.folder, self.program, backend)
        runs = [run for run in self.history.runs.values() if run.ended is not None and run.target.backend == backend]
        return typical([*self._past[backend], *(run.phases for run in runs if run.failure is None)])

    def usual_seconds(self, run: Run) -> float | None:
        """How long a run with the same request usually takes: the median of those before, in this session and
        those beside it, without the start of the worker. None where none is known. Read as `typical` is.
        """
        request = (run.target, run.comparison)
        here = [each for each in self.history.runs.values() if each.ended is not None and each.failure is None]
        known = [each.seconds for each in here if asks_the_same((each.target, each.comparison), request)]
        known += seconds_of_earlier(self.folder, self.program, *request)
        return median(known) if known else None

    def forget(self, run: int) -> None:
        """Let go of the graphs, code and output of a run that is over, in memory: its verdict stays, and so does all
        of it on disk.
        """
        self._bus.forget(run)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Pass every later event to `listener`, in order, on a thread of the session; the answer ends that.

        Past events are not repeated: before `start` and `run`, `events` has all of them.
        """
        return self._bus.subscribe(listener)

    # ------------------------------------------------------------- what the user does

    def start(self) -> None:
        """Warm the worker up and watch the rules' file; returns at once."""
        self._live().start()
        self._rules.start()

    def run(self, target: Target | None = None, comparison: Comparison | None = None, *, asked: bool = True) -> int:
        """Run the program, for a new target if there is one, and give the run's number at once.

        With a `comparison` it is compared with a reference too: the run's `diff`. A run in progress is cancelled, and
        one that still waits is dropped. A run that the user did not request (`asked` is false) replaces no request: it
        waits for a comparison or a benchmark to end, and if a run for the same target is in progress or waits, that
        run's number is returned. Raises AcceleratorError or SettingsError if the new target has no rules and
        names an accelerator that cannot be had.
        """
        jobs = self._live()
        if target is not None:
            self._rules.aim(target)
        self._watch_processes()
        return jobs.run(self.program, self.target, comparison, by_user=asked)

    def _watch_processes(self) -> None:
        """From the first run on, see which processes of the program compile."""
        if self._processes is None:
            from idbg.session.process_watch import ProcessWatch  # not earlier: the first paint would wait

            self._processes = ProcessWatch(self.folder, self._bus.emit, self.program, lambda: self.target)
            self._processes.start()

    def aim(self, target: Target) -> None:
        """Set the target of all later runs. Raises as `run` does."""
        self._live()
        self._rules.aim(target)

    def try_out(self, run: Run, suggestion: Suggestion) -> int:
        """Run the program again as a suggestion has it, and give the run's number at once; later runs are without it.

        `tried` records what it changed, once that run has ended. Raises as `run` does.
        """
        mine = self.target
        number = self.run(replace(suggestion.tried(run.target), rules=mine.rules))
        self.aim(mine)
        return number

    def tried(self, before: Run, after: Run, suggestion: Suggestion) -> None:
        """Record what a suggestion changed, for its rows."""
        self._bus.emit(events.SuggestionTried(trial=trial(before, after, suggestion)))

    def cancel(self) -> None:
        """Stop what is done now and forget what waits; a second time, without waiting for it to stop by itself."""
        self._live().cancel()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is being done and the listeners have all events; False if that takes longer than
        `timeout` seconds.
        """
        return (self._jobs is None or self._jobs.wait(timeout)) and self._bus.flush(timeout)

    def edit_rules(self, text: str, origin: str = "editor") -> Accelerator | None:
        """Put these rules in force for the next run; a text that is not valid is refused: the last good one stays.

        Where `origin` is a file, the rules are that file's from now on, and it is watched.
        """
        return self._rules.edit(text, origin)

    def export_repro(self, node: NodeId | None, rule: str = "") -> None:
        """Write a repro of one violation of the last run, or, with no node, of its failed compile; see ReproEnded."""
        jobs = self._live()
        if not jobs.runs:
            raise BadInput("nothing was run yet, so there is nothing to reproduce", hint="run the program first")
        jobs.add(WriteRepro(run=jobs.runs, folder="", node=node, rule=rule, rules=self.target.rules))

    def minify(self, sought: Sought, budget: Budget | None = None, *, keep_data: bool = True) -> None:
        """Find the smallest script that shows a failure of the last run again; see MinifyProgressed and MinifyEnded.

        `cancel` ends it with the smallest script so far. Raises BadInput if nothing was run yet, or no tensor is wrong.
        """
        jobs = self._live()
        run = self.history.runs.get(jobs.runs)
        if run is None:
            raise BadInput("nothing was run yet, so there is nothing to make smaller", hint="run the program first")
        if sought.kind == "wrong" and sought.launch is None and run.diff is not None:
            _check_a_tensor_is_wrong(run.diff)
        target = run.target
        if sought.kind == "violation":  # of the current rules: the run may have had others
            target = replace(target, rules=self.target.rules)
        jobs.add(
            Minify(
                run=run.number,
                program=run.program,
                target=target,
                folder="",
                sought=sought,
                failure=run.cause,
                comparison=run.comparison,
                budget=budget or Budget(),
                keep_data=keep_data,
            )
        )

    def bisect(self, question: Question | None = None) -> None:
        """Find the cause of the last run's failure (by default the part of the compiler that causes it),
        each try in a process of its own; see BisectProgressed and BisectEnded. `cancel` ends it with what is known.

        Raises BadInput if nothing was run yet.
        """
        from idbg.bisect.job import BisectJob  # not earlier: the first paint would wait

        jobs = self._live()
        run = self.history.runs.get(jobs.runs)
        if run is None:
            raise BadInput("nothing was run yet, so there is no failure to bisect", hint="run the program first")
        question = question or Question("compiler", run.program, replace(run.target, strict=False))
        jobs.add(BisectJob(question, run.number, jobs.tell))

    def map_errors(self, name: str, index: tuple[int, ...] = ()) -> None:
        """Map the error over a slice of an output of the last run, which was compared; see ErrorsMapped."""
        jobs = self._live()
        jobs.add(MapErrors(run=jobs.runs, name=name, index=index))

    def find_owner(self, launch: int) -> None:
        """Find whose the error of this launch of the last run's `diff.kernels` is; see OwnerJudged and OwnerEnded."""
        jobs = self._live()
        run = self.history.runs.get(jobs.runs)
        if run is None or run.diff is None or not 0 <= launch < len(run.diff.kernels):
            raise BadInput("the last run has no such kernel", hint="compare it with each kernel (D), then ask")
        jobs.add(FindOwner(run=jobs.runs, launch=launch, folder=""))

    def lower(self, kernel: Kernel) -> None:
        """Find what a kernel of the last run was lowered to, TTIR to SASS or assembly; see KernelLowered."""
        jobs = self._live()
        jobs.add(LowerKernel(run=jobs.runs, kernel=kernel))

    def edit_kernel(self, run: int, kernel: Kernel, text: str) -> int:
        """Try `text` as the source of a kernel of this run: see KernelEdited. Returns the number of the version.

        Raises BadInput where the text cannot be tried: what the program cannot call, or what was tried already.
        """
        jobs = self._live()
        compiled = self.history.runs[run]
        check_edit(kernel, compiled.codes.get((kernel.frame, kernel.part)), text)
        version = len(compiled.edits_of(*kernel.key)) + 1
        jobs.add(
            EditKernel(
                run=run,
                program=compiled.program,
                target=compiled.target,
                kernel=kernel,
                text=text,
                version=version,
                comparison=compiled.comparison,
            )
        )
        return version

    def bench(self, cases: list[BenchCase], database: Path | None = None) -> None:
        """Measure each in processes of its own when nothing else is done; see RowMeasured. Rows go to the database."""
        jobs = self._live()
        jobs.add(BenchJob(cases, database, jobs.tell, known=tuple(self.history.rows)))

    def time_kernels(self, case: BenchCase) -> None:
        """Time each kernel of the program on one backend, in a process of its own; see KernelsTimed."""
        jobs = self._live()
        jobs.add(BenchJob([case], None, jobs.tell, kernels=True))

    def close(self) -> None:
        """End the worker and all that it started, and the log. Idempotent."""
        if self._follower is not None:
            self._follower.stop()
        self._end_writer()
        self._rules.stop()
        if self._jobs is not None:
            self._jobs.close()
        if self._processes is not None:
            self._processes.close()
        self._bus.close()

    def _repr_html_(self) -> str | None:
        return html_of(self)

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _live(self) -> JobQueue:
        if self._jobs is None and self._source:
            raise _not_here()
        if self._jobs is None and any(each.rank is not None for each in self.history.processes.values()):
            raise BadInput(
                "this session is of a job of ranks: nothing can be run in it",
                hint="idbg diff --nproc-per-node N FILE.py compares the numbers of each rank",
            )
        if self._jobs is None:
            raise BadInput(
                "this session was read from disk: nothing can be run in it",
                hint=f"idbg-tui {self.program.label} runs the program again",
            )
        if self._jobs.closed:
            raise BadInput("this session is closed", hint="open a new one")
        return self._jobs


def _not_here() -> BadInput:
    return BadInput(
        "this session was imported from a trace: the program is not here, so nothing can be run or compared",
        hint="run the program with idbg: idbg run FILE.py",
    )


def _check_a_tensor_is_wrong(report: DiffReport) -> None:
    """Raises BadInput where what failed is no tensor that a script of a graph could show."""
    if report.only_eager_varies:
        raise BadInput(
            "eager itself gives something else each time: no script can be distinguished from a right one",
            hint="idbg diff names the outputs that vary",
        )
    if report.tensors_agree:
        what = "random operators" if report.only_draws_fail else "what is left in the program's Python state"
        raise BadInput(
            f"the numbers agree: what differs is {what}, and no script of a graph shows it", hint="idbg diff names it"
        )
