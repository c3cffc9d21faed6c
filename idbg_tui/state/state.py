"""The state of the screen: a fold of the session's events and of the user's choices. No widget, thread or torch."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.outline import ModuleHeading
from idbg.analysis.provenance import Provenance
from idbg.checking.rule_costs import CostAnswer
from idbg.constraints import Findings
from idbg.schema import events
from idbg.schema.code import Kernel, KernelCall, StageKey
from idbg.schema.diff import KernelError
from idbg.schema.errors import AcceleratorError
from idbg.schema.events import KernelEditing, ReproEnded, SessionEvent, WorkerDied
from idbg.schema.graphs import Graph, GraphId, Node, NodeId, Part
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.kernel_times import KernelTime
from idbg.schema.processes import Process
from idbg.schema.programs import Program, Target
from idbg.schema.repros import MinifyProgress
from idbg.schema.runs import History, Run
from idbg_tui.state import stages
from idbg_tui.state.costs import KnownCosts
from idbg_tui.state.jumps import JumpList, Relation, Walker
from idbg_tui.state.lookups import LaunchIndex, SourceFiles, StageLines
from idbg_tui.state.measurements import Measurements, PastMeasurements
from idbg_tui.state.rule_checks import RuleChecks, first_broken

# what changes a run, or what was measured of it, and nothing else that is kept here
_OF_RUN = (
    *(events.PhaseChanged, events.SideStarted, events.Compared, events.ErrorsMapped, events.KernelLowered),
    events.KernelEditing,
    *(events.RunEnded, events.WorkerStarted),
    *(events.BenchTaskStarted, events.BenchStepStarted, events.RowMeasured, events.KernelsTimed),
)
_DECIDED = events.DecisionsRecorded | events.GraphBroke | events.Recompiled | events.FrameFailed | events.FrameStarted
_OF_GRAPHS = (
    events.FrameStarted | events.GraphCaptured | events.CodeCaptured | events.LinksCaptured | events.StageCaptured
)
KernelOfRun = tuple[int, str, Part, str]
"""A run's number, and a kernel's frame, part and name."""
ONE_EDIT = 2.0  # seconds: edits that follow one another faster are one change of the rules


@dataclass
class Versions:
    """Counters that only grow: a pane repaints when one that it shows has changed."""

    run: int = 0  # a run began, ended or changed phase
    graphs: int = 0  # the shown run, its graphs, links or kernels
    selection: int = 0  # graph, node, kernel
    rules: int = 0  # the text, its error, what was checked
    log: int = 0  # any event
    decisions: int = 0  # what the compiler decided, of frames, breaks, guards and all else
    costs: int = 0  # what the shown graphs need, and what the rules cost them


@dataclass(frozen=True)
class Rules:
    """The rules' text as it is in the editor. With an `error` the last good rules stay in force."""

    text: str = ""
    origin: str = ""
    error: str = ""
    line: int = 0
    edits: int = 0


@dataclass
class State:
    """Everything that the panes show. `queries` derives what follows from it.

    Only its own methods change it: `apply` for what happened, `take_cost` and `take_past` for what was counted or read
    beside the screen, the others for what the user does.
    """

    events: list[SessionEvent] = field(default_factory=list)
    history: History = field(default_factory=History)
    program: Program | None = None
    folder: str = ""  # the session's, where it is now
    target: Target = field(default_factory=Target)
    main: "State | None" = None  # of the session's main process, where this is of another one
    live: bool = True
    arriving: str = ""  # see Session.arriving; it is over once the last run has ended
    beginning: bool = False  # the first run comes by itself, and has not begun
    rules: Rules = Rules()
    accelerator: Accelerator | None = None
    shown: Run | None = None  # whose graphs are shown: the last run that got as far
    graph_id: GraphId | None = None
    selected: NodeId | None = None
    heading: ModuleHeading | None = None  # the module under the graph's cursor, if that is on no node
    kernel: Kernel | None = None  # chosen by hand; None: those of the selected node
    launch: KernelCall | None = None  # the one of that kernel's that was chosen, if one was
    stage: StageKey | None = None  # of another compiler, chosen in place of a graph's
    kernel_versions: dict[KernelOfRun, KernelEdit | None] = field(default_factory=dict)  # shown; None: the original
    versions: Versions = field(default_factory=Versions)
    checks: RuleChecks = field(default_factory=RuleChecks)
    costs: KnownCosts = field(default_factory=KnownCosts)
    repro: ReproEnded | None = None
    repro_running: bool = False
    search: MinifyProgress | None = None  # of the smallest script, while it goes on
    attributing: bool = False  # the origin of a launch's error is searched
    cancelling: bool = False
    comparison: int = 0  # the run whose comparison is shown, chosen among several; 0: the last
    worker_died: WorkerDied | None = None
    jumps: JumpList = field(default_factory=JumpList)
    walker: Walker = field(default_factory=Walker)
    measurements: Measurements = field(default_factory=Measurements)
    typical: dict[str, float] = field(default_factory=dict)  # seconds of each phase
    launch_errors: LaunchIndex[KernelError] = field(default_factory=LaunchIndex)
    launch_times: LaunchIndex[KernelTime] = field(default_factory=LaunchIndex)
    stage_lines: StageLines = field(default_factory=StageLines)
    source_files: SourceFiles = field(default_factory=SourceFiles)
    _provenance: tuple[int, Provenance] | None = None
    _edited: float = 0.0
    _in_force: str = ""  # the last good rules
    _follow: bool = True  # nobody chose a graph yet: go to the most telling one as it arrives
    _last_in: dict[GraphId, str] = field(default_factory=dict)

    @property
    def process(self) -> Process | None:
        """The process on the screen; None: the session's main one."""
        return self.history.process if self.main is not None else None

    @property
    def whole(self) -> "State":
        """The state of the session's main process, which knows of the others."""
        return self.main or self

    @property
    def run(self) -> Run | None:
        """The latest run, which may still be going on; `shown` is the one whose graphs are on the screen."""
        return self.history.last

    @property
    def running(self) -> bool:
        """Whether the latest run goes on; never of a saved session, whose run may have no end."""
        return self.live and self.run is not None and self.run.ended is None

    @property
    def trying(self) -> bool:
        """Whether a repro is written and tried or made smaller, or a kernel called alone or edited."""
        return self.repro_running or self.attributing or self.searching or self.edited is not None

    @property
    def edited(self) -> KernelEditing | None:
        """The edited kernel that is tried now."""
        runs = self.history.runs.values() if self.live else ()
        return next((run.editing for run in runs if run.editing is not None), None)

    @property
    def searching(self) -> bool:
        """Whether the smallest script is looked for."""
        return self.live and self.search is not None

    @property
    def measuring(self) -> bool:
        """Whether rows are left to measure."""
        return self.live and self.history.rows_left > 0

    @property
    def graph(self) -> Graph | None:
        """The graph that is shown."""
        return self.shown.graphs.get(self.graph_id) if self.shown and self.graph_id else None

    @property
    def node(self) -> Node | None:
        """The selected node; None also where the shown graph has it no more."""
        graph = self.graph
        return graph.by_name.get(self.selected.name) if graph and self.selected else None

    @property
    def provenance(self) -> Provenance | None:
        """Where nodes come from and go to, in the shown run."""
        if self.shown is None:
            return None
        if self._provenance is None or self._provenance[0] != self.versions.graphs:
            self._provenance = self.versions.graphs, Provenance(self.shown)
        return self._provenance[1]

    # ---------------------------------------------------------------- what happened

    def apply(self, batch: Iterable[SessionEvent]) -> None:
        """Take in what happened, in order."""
        for event in batch:
            self.events.append(event)
            self.history.apply(event)
            self.versions.log += 1
            if isinstance(event, _DECIDED):
                self.versions.decisions += 1
            self._note(event)
        self._settle()

    def begun(self) -> None:
        """No first run is on its way."""
        self.beginning = False
        self.versions.run += 1

    def _note(self, event: SessionEvent) -> None:
        match event:
            case events.SessionOpened():
                self.program, self.folder = event.program, self.folder or event.folder
            case events.RunStarted():
                self.versions.run += 1
                self.beginning = False
                self.program = event.program
                self.worker_died = None
                self.comparison = 0 if event.comparison is not None else self.comparison
                self.cancelling = False
                if event.target.rules and not self._in_force:  # later ones may be older than the last edit
                    self._take_rules(event.target.rules, event.target.accelerator, event.at)
            case _ if isinstance(event, _OF_RUN):
                self.versions.run += 1
            case WorkerDied():
                self.versions.run += 1
                self.beginning = False
                self.worker_died = event
            case _ if isinstance(event, _OF_GRAPHS):
                self.versions.graphs += 1
                if isinstance(event, events.GraphCaptured) and event.graph.id == self.graph_id:
                    self.heading = None  # it is of the graph before
            case events.RulesEdited():
                self._take_rules(event.text, event.origin, event.at)
            case events.RulesRefused():
                self.versions.rules += 1
                self.rules = Rules(event.text, event.origin, event.message, event.line, self.rules.edits)
            case events.ReproStarted():
                self.versions.run += 1
                self.repro, self.repro_running = None, True
            case ReproEnded():
                self.versions.run += 1
                self.repro, self.repro_running = event, False
            case events.MinifyStarted():
                self.versions.run += 1
                self.search = MinifyProgress("starting")
            case events.MinifyProgressed():  # many in a second: the footer and the list of repros look by themselves
                self.search = event.progress
            case events.MinifyEnded():
                self.versions.run += 1
                self.search, self.cancelling = None, False
            case events.OwnerStarted() | events.OwnerJudged() | events.OwnerEnded():
                self.versions.run += 1
                self.attributing = not isinstance(event, events.OwnerEnded)
            case events.KernelEdited(edit=edit):
                self.versions.run += 1
                self.kernel_versions[event.run, *edit.kernel] = edit
                self.cancelling = False
            case events.BenchStarted():
                self.versions.run += 1
                self.measurements.waiting, self.measurements.failure = 0, None
            case events.BenchEnded():
                self.versions.run += 1
                self.measurements.failure, self.cancelling = event.failure, False
            case _:
                pass

    def _take_rules(self, text: str, origin: str, at: float) -> None:
        self.versions.rules += 1
        try:
            self.accelerator = parse(text)
        except AcceleratorError as error:
            self.rules = Rules(text, origin, error.message, error.line, self.rules.edits)
            return
        self.rules = Rules(text, origin, edits=self.rules.edits + 1)
        self._in_force = text
        self.checks.set_rules(self.accelerator.rules, again=at - self._edited < ONE_EDIT)
        self._edited = at

    def _settle(self) -> None:
        """Show the latest run once it has as many graphs as the shown one, or has ended by itself; and the most telling
        graph until one is chosen."""
        run = self.run
        if run is None or not run.graphs:
            if run is self.shown and self.graph_id is not None:  # its one frame is traced anew
                self.graph_id = self.selected = None
                self.versions.selection += 1
            return
        ended = run.verdict != "waiting"
        if self.shown is not run and (self.shown is None or ended or self.shown.graphs.keys() <= run.graphs.keys()):
            self.shown = run
            self.versions.graphs += 1
            self.kernel = self.launch = self.heading = None
        assert self.shown is not None
        if self.graph_id not in self.shown.graphs or (self._follow and self.shown is run):
            self._show_graph(stages.most_telling(self.shown))
        elif self.node is None:
            self._select_somewhere()

    def take_cost(self, findings: Findings, answer: CostAnswer) -> None:
        """Take in what a graph of the shown run needs, or what its last check costs; what is neither is forgotten."""
        graph = findings.graph
        if self.shown is None or self.shown.graphs.get(graph.id) is not graph:
            return
        self.costs.take(findings, answer)
        self.versions.costs += 1
        if isinstance(answer, MemoryProfile) and self.checks.include_graph_rules(graph):
            self.versions.rules += 1

    def take_typical(self, seconds: dict[str, float]) -> None:
        """Take in how long each phase takes mostly, from this session's runs and earlier sessions'."""
        self.typical = seconds
        self.versions.decisions += 1

    def take_past(self, past: PastMeasurements) -> None:
        """Take in what was measured before."""
        self.measurements.past = past
        self.versions.run += 1

    # ---------------------------------------------------------------- what the user chose

    def choose(self, node: NodeId, *, jump: bool = False, heading: ModuleHeading | None = None) -> bool:
        """Select a node, and show its graph; with a `heading`, the module that the node is one of. False if the shown
        run has no such node.
        """
        graph = self.shown.graphs.get(node.graph) if self.shown else None
        if graph is None or node.name not in graph.by_name:
            return False
        self._follow = False
        if jump and self.selected is not None:
            self.jumps.leave(self.selected, node)
        self._select(node)
        if heading is not None:
            self.heading = heading
            self.versions.selection += 1
        return True

    def choose_graph(self, graph: GraphId) -> bool:
        """Show another graph, with the same computation selected where it has one."""
        if self.shown is None or graph not in self.shown.graphs:
            return False
        self._follow = False
        self.choose_stage(None)
        self._show_graph(graph)
        return True

    def choose_stage(self, stage: StageKey | None) -> bool:
        """Show a stage of another compiler, of the shown run; None: the graph's own. False if there is none."""
        if stage is not None and (self.shown is None or stage not in self.shown.stages):
            return False
        if stage != self.stage:
            self.stage = stage
            self.versions.selection += 1
        return True

    def mark_kernel(self, kernel: Kernel, launch: KernelCall | None, node: NodeId | None = None) -> None:
        """Mark what a kernel of the shown run, or one launch of it, computes; with a `node` of the shown graph, select
        that too."""
        self._follow = False
        self.kernel, self.launch = kernel, launch
        self.selected, self.heading = node or self.selected, None
        self.versions.selection += 1

    def choose_version(self, kernel: Kernel, edit: KernelEdit | None) -> None:
        """Show this version of a kernel of the shown run; None is the original."""
        if self.shown is not None:
            self.kernel_versions[self.shown.number, *kernel.key] = edit
            self.versions.selection += 1

    def walk(self, relation: Relation, turn: int) -> bool:
        """Select the node's first input or user; with `turn` 1 the next after the last step. False if there is none."""
        graph = self.graph
        name = self.walker.step(graph, self.selected.name, relation, turn) if graph and self.selected else None
        return graph is not None and name is not None and self.choose(graph.node_id(name), jump=True)

    def step_jump(self, *, back: bool) -> bool:
        """Return to where a jump left from (or went to). False at the end of the list."""
        place = self.jumps.back(self.selected) if back else self.jumps.forward(self.selected)
        return place is not None and self.choose(place)

    def step_comparison(self, step: int) -> bool:
        """Show the comparison before the shown one, or after it. False where there is none."""
        numbers = [run.number for run in self.history.runs.values() if run.diff is not None]
        place = (numbers.index(self.comparison) if self.comparison in numbers else len(numbers) - 1) + step
        if not 0 <= place < len(numbers):
            return False
        self.comparison = 0 if place == len(numbers) - 1 else numbers[place]
        self.versions.run += 1
        return True

    def expect_rows(self, count: int) -> None:
        """So many rows were requested: they begin when nothing else runs. 0 cancels that."""
        self.measurements.waiting = count

    def measure_on(self, backends: tuple[str, ...]) -> None:
        """What is measured from now on: NAME or NAME:MODE each."""
        self.measurements.chosen = backends

    def cancel(self) -> None:
        """What runs was requested to stop, and what waits is dropped."""
        self.cancelling = self.running or self.measuring or self.searching or self.edited is not None
        self.measurements.waiting = 0

    def set_target(self, target: Target) -> None:
        """What the next run is compiled for."""
        if target != self.target:
            self.target = target
            self.versions.run += 1

    def _show_graph(self, graph: GraphId) -> None:
        if graph == self.graph_id:
            if self.node is None:
                self._select_somewhere()
            return
        before = self.selected
        self.graph_id = graph
        self.versions.selection += 1
        provenance = self.provenance
        same = provenance.counterparts(before, graph) if provenance and before else []
        if same:
            self._select(same[0])
        else:
            self._select_somewhere()

    def _select_somewhere(self) -> None:
        """The node selected here before, else the first one that breaks a rule, else the first one that computes."""
        graph = self.graph
        if graph is None or not graph.nodes:
            self.selected = None
            return
        name = self._last_in.get(graph.id, "")
        if name not in graph.by_name:
            broken = first_broken(graph, self.checks.findings(graph))
            computed = next((node for node in graph.nodes if node.op.startswith("call")), graph.nodes[0])
            name = broken or computed.name
        self._select(graph.node_id(name))

    def _select(self, node: NodeId) -> None:
        if node == self.selected and self.kernel is None and self.heading is None:
            return
        self.heading = None
        self.versions.selection += 1
        self._last_in[node.graph] = node.name
        self.selected, self.graph_id = node, node.graph
        self.kernel = self.launch = None
