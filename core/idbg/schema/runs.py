"""What is known of each run so far, with its verdict.

A fold of the session's events, shared by the screen, the reports and the CLI. A run's verdict is that of its worst
stage; whoever shows, writes or exits with one asks here. What is not known, because the run goes on or was cancelled,
is "waiting".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.schema import events
from idbg.schema.bench import Row, Rows
from idbg.schema.bisection import Bisected
from idbg.schema.code import CompilerStage, Kernel, Lowered, OutputCode, StageKey
from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions.decided import Decided
from idbg.schema.decisions.dynamo import BreakAgain, GraphBreak, Stack, Trial
from idbg.schema.diff import Comparison, DiffReport, ErrorMap, Numbers, Outcome, SideResult
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Frame, Graph, GraphId, Links, Part, Stage
from idbg.schema.html_repr import html_of
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.node_values import CallValues
from idbg.schema.processes import Process, ProcessEnd, ProcessReport
from idbg.schema.programs import Failure, Program, Switch, Target, Verdict
from idbg.schema.ranks import RankComparison
from idbg.schema.session_repros import REPRO, SessionRepro, with_event
from idbg.schema.strict_json import like
from idbg.schema.violations import Violation, count, marked

OLD_RECORDS = {"caches": "cache", "spans": "time", "autotuning": "autotune", "cuda graphs": "cuda_graphs"}
"""Of logs of format 1, and their names now."""
BACKEND_MATCH = "BACKEND_MATCH"  # torch's guard of which backend a frame was compiled with
_NUMBERS: dict[Outcome, Numbers] = {"passed": "agree", "failed": "wrong"}
# of several programs: what is not known is not clean
_WORST_FIRST: tuple[Verdict, ...] = ("failed", "wrong", "empty", "violations", "waiting", "compiled", "clean")


@dataclass
class CollectiveLog:
    """What is known of a run's collectives: all that it `began` as far as they are recorded, in order; those that were
    `pending` when it was last looked, and the last of each group. `lost`: those that are not in `began`. `stack` is the
    main thread's at that time, the innermost line last. `recorded`: whether torch records collectives at all; else
    `counts` has how many each group began.
    """

    began: list[Collective] = field(default_factory=list)
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    pending: tuple[Collective, ...] = ()
    last: dict[str, Collective] = field(default_factory=dict)
    lost: int = 0
    stack: Stack = ()
    recorded: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def apply(self, seen: events.CollectivesSeen) -> None:
        """Take in what was seen since the event before."""
        self.recorded = self.recorded or not seen.counts
        self.counts |= seen.counts
        self.began += seen.began
        self.groups |= {group.name: group for group in seen.groups}
        self.pending, self.stack = seen.pending, seen.stack
        self.last |= {each.group: each for each in (*seen.began, *seen.last) if not each.peer_to_peer}
        self.lost += seen.lost


@dataclass
class Run:
    """One compilation of a program for a target, as far as it has come.

    `ended` is the worker's verdict at its end, None before; `verdict` is what to show. `checked`: its backend
    holds graphs against the rules.
    """

    number: int
    program: Program
    target: Target
    started: float
    comparison: Comparison | None = None
    backends: tuple[str, ...] = ()  # those that compiled, where one is the program's own
    frames: dict[str, Frame] = field(default_factory=dict)
    graphs: dict[GraphId, Graph] = field(default_factory=dict)
    codes: dict[tuple[str, Part], OutputCode] = field(default_factory=dict)
    links: list[Links] = field(default_factory=list)
    stages: dict[StageKey, CompilerStage] = field(default_factory=dict)  # of other compilers, in the order they came
    breaks: list[GraphBreak] = field(default_factory=list)
    recompiles: list[events.Recompiled] = field(default_factory=list)
    frame_failures: list[events.FrameFailed] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    unrecorded: frozenset[str] = frozenset()  # of a trace: of what it has no record
    torch_settings: tuple[str, ...] | None = None  # that differ from torch's defaults; None where that was not recorded
    backwards_idle: tuple[str, ...] = ()  # frames whose backward was compiled, and never called by the program
    output: list[events.OutputWritten] = field(default_factory=list)
    sides: list[SideResult] = field(default_factory=list)
    side: str = ""  # the one that goes on
    diff: DiffReport | None = None
    maps: dict[str, ErrorMap] = field(default_factory=dict)  # the last of each output
    lowered: dict[tuple[str, Part, str], Lowered] = field(default_factory=dict)
    edits: list[KernelEdit] = field(default_factory=list)  # of its kernels, oldest first
    editing: events.KernelEditing | None = None  # the one that is tried now
    phases: dict[str, float] = field(default_factory=dict)
    phase: str = ""
    seconds: float = 0.0
    ended: Verdict | None = None
    checked: bool = True
    failure: Failure | None = None
    exit_status: int = 0  # a script's own
    children: int = 0  # processes that the program started, and that compiled
    processes: dict[str, ProcessReport] = field(default_factory=dict)  # those of them that are known, by name
    bisected: Bisected | None = None  # the last
    decided: Decided = field(default_factory=Decided)
    collectives: CollectiveLog = field(default_factory=CollectiveLog)
    node_values: list[CallValues] = field(default_factory=list)  # of a rank, in the order of the calls
    trials: list[Trial] = field(default_factory=list)  # of suggestions, those of all runs of its session

    @property
    def backend(self) -> str:
        """The backends that compiled it; the target's until one of the program's own did."""
        return " + ".join(self.backends) or self.target.backend

    @property
    def verdict(self) -> Verdict:
        """The verdict of its worst stage or process; "waiting" while that is not known."""
        if self.ended is None or (self.failure is not None and self.failure.kind == "cancelled"):
            return "waiting"
        return worst((self.own_verdict, *(each.verdict for each in self.processes.values())))

    @property
    def own_verdict(self) -> Verdict:
        """The verdict of its worst stage, without its other processes."""
        at_end = (
            () if self.ended in (None, "clean", "compiled") else (self.ended,)
        )  # a comparison may be judged after it
        return min((*at_end, *self._verdicts()), key=_WORST_FIRST.index)

    def _verdicts(self) -> Iterator[Verdict]:
        """The verdict of each of its stages."""
        if self.cause is not None or self.exit_status or (self.diff is not None and self.diff.verdict == "error"):
            yield "failed"
        if self.diff is not None and self.diff.verdict == "failed":
            yield "wrong"
        if self.diff is not None and self.diff.verdict == "empty":
            yield "empty"
        if self.violations:
            yield "violations"
        elif not self.graphs and not self.codes and not self.children and self.ended != "compiled":
            yield "empty"
        yield "clean" if self.numbers == "agree" else "compiled"

    @property
    def numbers(self) -> Numbers:
        """What is known of its numbers: those of a side that failed, or of what was not compiled, are not compared."""
        if self.diff is None:
            return "not compared"
        return _NUMBERS.get(self.diff.verdict, "not comparable" if self.diff.not_comparable else "not compared")

    @property
    def compared(self) -> bool:
        """Whether its numbers were held against a reference, up to an answer."""
        return self.numbers in ("agree", "wrong")

    @property
    def cause(self) -> Failure | None:
        """The failure that makes the run a failed one: the program's, one that the program swallowed, or a side's.

        Strict rules that stopped a compile are violations, not a failure.
        """
        swallowed = (failed.failure for failed in self.frame_failures)
        sides = (side.failure for side in self.diff.sides if self.diff.verdict == "error") if self.diff else ()
        failures = (self.failure, *swallowed, *sides)
        return next((failure for failure in failures if failure is not None and failure.kind != "constraints"), None)

    @property
    def checked_rules(self) -> bool:
        """Whether graphs were held against rules: its backend does, and there are some."""
        return self.checked and self.target.has_rules

    @property
    def violation_count(self) -> int | None:
        """How many violations there are, each once; None where no rule was checked while it compiled."""
        return count(self.violations) if self.checked_rules else None

    @property
    def stopped(self) -> bool:
        """Whether strict rules stopped the compile."""
        return self.failure is not None and self.failure.kind == "constraints"

    @property
    def looks(self) -> Verdict:
        """The verdict whose sign and colour the run is shown with: rules that stopped a compile are as bad as a
        failure, and numbers that cannot be compared are not known.
        """
        if self.verdict == "compiled" and self.diff is not None and self.diff.not_comparable:
            return "waiting"
        return "failed" if self.stopped else self.verdict

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels of all frames and parts, in the order in which their code came."""
        return [kernel for code in self.codes.values() for kernel in code.kernels]

    @property
    def times_broken(self) -> int:
        """How often Dynamo ended a graph, also again at a place that `breaks` has."""
        return len(self.breaks) + len(self.decided.every(BreakAgain))

    def graph(self, frame: str, stage: Stage, part: Part = "") -> Graph | None:
        """The graph of this frame at this stage; None where the run has none."""
        return self.graphs.get(GraphId(frame, stage, part))

    def edits_of(self, frame: str, part: Part, name: str) -> list[KernelEdit]:
        """The versions of this kernel's source that were tried, oldest first."""
        return [edit for edit in self.edits if edit.kernel == (frame, part, name)]

    def apply(self, event: SessionEvent) -> None:
        """Take in one event of this run; events of other kinds change nothing."""
        match event:
            case events.PhaseChanged(seconds=None):
                self.phase = event.phase
            case events.PhaseChanged():
                self.phases[event.phase] = self.phases.get(event.phase, 0.0) + (event.seconds or 0.0)
            case events.NotRecorded():
                self.unrecorded = frozenset(OLD_RECORDS.get(each, each) for each in event.records)
            case events.BackendsCalled():
                self.backends = event.backends
            case events.OutputWritten():
                self.output.append(event)
            case events.FrameStarted():
                self._forget(event.frame.id)
                self.frames[event.frame.id] = event.frame
            case events.SettingsRead():
                self.torch_settings = tuple(dict.fromkeys((*(self.torch_settings or ()), *event.settings)))
            case events.GraphCaptured():
                self.graphs[event.graph.id] = event.graph
            case events.CodeCaptured():
                self.codes[event.code.frame, event.code.part] = event.code
            case events.LinksCaptured():
                self.links.append(event.links)
            case events.StageCaptured(stage=stage):
                self.stages[stage.key] = stage
            case events.GraphBroke():
                self.breaks.append(event.graph_break)
            case events.Recompiled() if self.counts(event):
                self.recompiles.append(event)
            case events.FrameFailed():
                self.frame_failures.append(event)
            case events.ViolationsFound():
                self.violations.extend(event.violations)
            case events.CollectivesSeen():
                self.collectives.apply(event)
            case events.NodeValuesMeasured(values=values):
                self.node_values.append(values)
            case events.BackwardsIdle():
                self.backwards_idle = event.frames
            case events.SideStarted() | events.SideEnded() | events.Compared() | events.ErrorsMapped():
                self._compared(event)
            case events.OwnerJudged() | events.OwnerEnded():
                if self.diff is not None and event.owner is not None:
                    self.diff = self.diff.with_owner(event.owner)
            case events.KernelLowered(lowered=Lowered() as lowered):
                self.lowered[event.frame, event.part, event.name] = lowered
            case events.KernelEditing() | events.KernelEdited():
                self._edited(event)
            case events.BisectEnded(bisected=Bisected() as found):
                self.bisected = found
            case events.RunEnded():
                self.ended, self.seconds, self.failure = event.verdict, event.seconds, event.failure
                self.checked, self.exit_status, self.children = event.checked, event.exit_status, event.children
                self.violations = marked(self.violations, self.links)
            case events.DecisionsRecorded():
                self.decided.apply(event.frame, event.decisions)
            case _:
                pass

    def _compared(self, event: events.SideStarted | events.SideEnded | events.Compared | events.ErrorsMapped) -> None:
        match event:
            case events.SideStarted():
                self.side = event.side
            case events.SideEnded():
                self.side = ""
                self.sides.append(event.side)
            case events.Compared():
                self.diff = event.report
                self.side = ""  # a report comes between sides, and after the searches that follow them
            case events.ErrorsMapped(map=ErrorMap() as error_map):
                self.maps[error_map.name] = error_map

    def _edited(self, event: events.KernelEditing | events.KernelEdited) -> None:
        self.editing = event if isinstance(event, events.KernelEditing) else None
        if isinstance(event, events.KernelEdited):
            self.edits.append(event.edit)

    def counts(self, recompiled: events.Recompiled) -> bool:
        """Whether it is a recompile of the program's, and not one of a comparison's own backends."""
        return self.comparison is None or BACKEND_MATCH not in recompiled.reason

    def let_go(self) -> None:
        """Drop nodes, code and output, which take most memory; the verdict stays what it is."""
        self.graphs = {key: Graph(key, ()) for key in self.graphs}
        self.codes = {key: OutputCode(*key, "") for key in self.codes}
        self.lowered, self.maps = {}, {}
        self.links, self.stages, self.output = [], {}, []
        self.decided = Decided()

    def _repr_html_(self) -> str | None:
        return html_of(self)

    def _forget(self, frame: str) -> None:
        """Drop what was captured of a frame that torch traces anew: the graphs that it had are none that run."""
        if frame not in self.frames:
            return
        self.graphs = {key: graph for key, graph in self.graphs.items() if key.frame != frame}
        self.codes = {key: code for key, code in self.codes.items() if key[0] != frame}
        self.links = [links for links in self.links if links.above.frame != frame]
        self.stages = {key: stage for key, stage in self.stages.items() if stage.frame != frame}
        self.violations = [violation for violation in self.violations if violation.node.graph.frame != frame]
        self.decided.forget(frame)


@dataclass
class History:
    """Every run of a session, and the worker that made them; its repros, oldest first; the benchmark rows, and what is
    measured now. `missing` says, a sentence each, what the session lacks: what was damaged, or was not kept. `process`
    is whose log it is, None of the session's main process, which has the others in `processes`, by name.
    """

    runs: dict[int, Run] = field(default_factory=dict)
    repros: list[SessionRepro] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)
    measuring_since: float = 0.0
    task: events.BenchTaskStarted | None = None
    step: events.BenchStepStarted | None = None  # of the task
    rows_left: int = 0
    kernels: events.KernelsTimed | None = None  # the last
    worker: events.WorkerStarted | None = None
    switches: tuple[Switch, ...] = ()
    missing: list[str] = field(default_factory=list)
    process: Process | None = None
    ranks: RankComparison | None = None  # of its processes; None where they were not compared
    processes: dict[str, ProcessReport] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)  # of suggestions

    @property
    def last_as_requested(self) -> Run | None:
        """The last run that tried no suggestion; the last run if there is no other."""
        tried = {trial.after for trial in self.trials}
        return self.runs[max(self.runs.keys() - tried)] if self.runs.keys() - tried else self.last

    def take_process(self, report: ProcessReport) -> None:
        """What is known of a process now: of the session, and of the run that it belongs to."""
        self.processes[report.name] = report
        known = (run for run in self.runs.values() if report.name in run.processes)
        run = self.runs.get(report.run) or next(known, self.last)
        if run is not None:
            run.processes[report.name] = report

    @property
    def last(self) -> Run | None:
        """The run with the highest number; None before the first."""
        return self.runs[max(self.runs)] if self.runs else None

    @property
    def verdict(self) -> Verdict:
        """The session's: that of its deciding run, or "wrong" where a benchmark says so and that run is no worse.
        Without a run it is that of its worst process.
        """
        if self.wrong_rows:
            return "wrong"
        run = self.deciding_run
        return run.verdict if run is not None else worst(each.verdict for each in self.processes.values())

    @property
    def looks(self) -> Verdict:
        """The verdict whose sign and colour the session is shown with."""
        return self.deciding_run.looks if self.deciding_run and not self.wrong_rows else self.verdict

    @property
    def wrong_rows(self) -> list[Row]:
        """The measurements that decide: their numbers are wrong, none was repeated since, and no run says worse."""
        if self.deciding_run is not None and self.deciding_run.verdict in ("failed", "wrong"):
            return []
        return [row for row in {row.key: row for row in self.rows}.values() if row.diff == "failed"]

    @property
    def deciding_run(self) -> Run | None:
        """The run whose verdict is the worst that stands: the last of each program, or a worse one whose numbers are
        wrong still.

        Wrong numbers stay wrong until the same program, for the same target, was compared again.
        """
        wrong = [run for run in self.comparisons() if run.verdict == "wrong"]
        tried = {trial.after for trial in self.trials}
        requested = [run for number, run in self.runs.items() if number not in tried] or list(self.runs.values())
        last = {run.program: run for run in requested}.values()
        standing = sorted((*last, *wrong), key=lambda run: -run.number)
        return min(standing, key=lambda run: _WORST_FIRST.index(run.verdict), default=None)

    def comparisons(self) -> list[Run]:
        """The last run that compared each program for each target, whatever the rules were, with each reference. One
        that was cancelled replaces none.
        """
        answered = [run for run in self.runs.values() if run.compared and run.verdict != "waiting"]
        return list({_what_was_compared(run): run for run in answered}.values())

    def apply(self, event: SessionEvent) -> None:
        """Take in the next event, of whatever kind."""
        if isinstance(event, REPRO):
            run = self.runs.get(event.run)
            self.repros = with_event(self.repros, event, run.violations if run else ())
        match event:
            case events.RunStarted():
                run = Run(event.run, event.program, event.target, event.at, event.comparison, trials=self.trials)
                self.runs[event.run] = run
            case events.SuggestionTried():
                self.trials.append(event.trial)
            case events.RunEvent() if (run := self.runs.get(event.run)) is not None:
                run.apply(event)
            case events.SessionOpened():
                self.process = event.process
            case events.ProcessStarted():
                self.take_process(like(ProcessReport, event.process))
            case events.ProcessEnded() if (process := self.processes.get(event.name)) is not None:
                end = like(ProcessEnd, event)
                verdict: Verdict = "failed" if end.is_wrong else event.verdict
                self.take_process(replace(process, ended=end, verdict=verdict, said=event.said))
            case events.WorkerStarted():
                known = self.worker.machine if self.worker else None
                self.worker = replace(event, machine=event.machine or known)
            case events.SwitchesListed():
                self.switches = event.switches
            case events.Noted(missing=True):
                self.missing.append(event.text)
            case events.BenchStarted():
                self.rows_left, self.measuring_since = event.cases, event.at
            case events.BenchTaskStarted():
                self.task, self.step = event, None
            case events.BenchStepStarted():
                self.step = event
            case events.KernelsTimed():
                self.kernels = event
            case events.RowMeasured():
                self.rows.append(event.row)
                self.rows_left -= 1
            case events.BenchEnded():
                self.task, self.step, self.rows_left = None, None, 0
            case _:
                pass

    def _repr_html_(self) -> str | None:
        return html_of(self)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """That of several processes: one of which nothing is known, or that compiled nothing, decides only alone."""
    found = set(verdicts)
    return min(found - {"waiting", "empty"} or found, key=_WORST_FIRST.index, default="waiting")


def _what_was_compared(run: Run) -> str:
    """Of what a comparison tells: the program, its target whatever the rules are, and the reference."""
    reference = run.comparison.reference if run.comparison else ""
    target = replace(run.target, rules="", strict=False)  # which has tables, that cannot be hashed
    return repr((run.program, target, reference))


def fold(log: Iterable[SessionEvent]) -> History:
    """The history of these events."""
    history = History()
    for event in log:
        history.apply(event)
    return history
