"""What is known of the session's runs, and of the graph and the node that are shown? Looked up, never changed here."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from idbg.accelerators.model import Accelerator
from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.provenance import Provenance
from idbg.constraints import Findings
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.diff import DiffReport, KernelError
from idbg.schema.events import ReproEnded, SessionEvent, WorkerDied
from idbg.schema.graphs import Graph, GraphId, Node, NodeId, Part
from idbg.schema.kernel_times import KernelTime, KernelTimes
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, Run
from idbg.schema.violations import Severity, Violation
from idbg_tui.state import stages, user_files
from idbg_tui.state.costs import Costs, Priced, Question, pads
from idbg_tui.state.rule_checks import Verdicts, totals


@dataclass
class Versions:
    """Counters that only grow: a pane repaints when one that it shows has changed."""

    run: int = 0  # a run began, ended or changed phase
    graphs: int = 0  # the shown run, its graphs, links or kernels
    selection: int = 0  # graph, node, kernel
    rules: int = 0  # the text, its error, what was checked
    log: int = 0  # any event
    costs: int = 0  # what the shown graphs need, and what the rules cost them


@dataclass(frozen=True)
class Rules:
    """The rules' text as it stands in the editor. With an `error` the last good rules stay in force."""

    text: str = ""
    origin: str = ""
    error: str = ""
    line: int = 0
    edits: int = 0


@dataclass
class Known:
    """Everything that was learnt from events, and what follows from it."""

    events: list[SessionEvent] = field(default_factory=list)
    history: History = field(default_factory=History)
    program: Program | None = None
    folder: str = ""
    target: Target = field(default_factory=Target)
    live: bool = True
    rules: Rules = Rules()
    accelerator: Accelerator | None = None
    shown: Run | None = None  # whose graphs are shown: the last run that got as far
    graph_id: GraphId | None = None
    selected: NodeId | None = None
    kernel: Kernel | None = None  # chosen by hand; None: those of the selected node
    launch: KernelCall | None = None  # the one of that kernel's that was chosen, if one was
    versions: Versions = field(default_factory=Versions)
    verdicts: Verdicts = field(default_factory=Verdicts)
    costs: Costs = field(default_factory=Costs)
    repro: ReproEnded | None = None
    repro_running: bool = False
    cancelling: bool = False
    worker_died: WorkerDied | None = None
    _provenance: tuple[int, Provenance] | None = None
    _times: tuple[KernelTimes, dict[tuple[str, str, str], KernelTime]] | None = None
    _files: frozenset[str] = frozenset()
    _files_of: dict[GraphId, Graph] = field(default_factory=dict)  # those whose files are in `_files`
    _errors: tuple[DiffReport, dict[tuple[str, str, str], KernelError]] | None = None

    @property
    def run(self) -> Run | None:
        """The latest run, which may still be going on; `shown` is the one whose graphs are on the screen."""
        return self.history.last

    @property
    def compared(self) -> Run | None:
        """The last run that was held against a reference, whatever came of it."""
        return next((run for run in reversed(self.history.runs.values()) if run.diff is not None), None)

    def error_of(self, kernel: Kernel, call: KernelCall) -> KernelError | None:
        """What the last comparison observed of a launch, if it was of the run that is shown."""
        compared = self.compared
        report = compared.diff if compared is not None and compared is self.shown else None
        if report is None or not report.kernels:
            return None
        if self._errors is None or self._errors[0] is not report:
            by_launch: dict[tuple[str, str, str], KernelError] = {
                (one.frame, one.part, one.handle): one for one in report.kernels
            }
            self._errors = report, by_launch
        return self._errors[1].get((kernel.frame, kernel.part, call.handle))

    def time_of(self, kernel: Kernel, call: KernelCall) -> KernelTime | None:
        """How long a launch takes, if the kernels of the shown run's program and backend were timed."""
        times = self.timed
        if times is None:
            return None
        if self._times is None or self._times[0] is not times:
            by_launch: dict[tuple[str, str, str], KernelTime] = {
                (one.frame, one.part, one.handle): one for one in times.kernels
            }
            self._times = times, by_launch
        return self._times[1].get((kernel.frame, kernel.part, call.handle))

    @property
    def timed(self) -> KernelTimes | None:
        """The times of the last timed kernels, if they are of the shown run's program and backend."""
        timed, shown = self.history.kernels, self.shown
        if timed is None or timed.times is None or shown is None:
            return None
        same = (timed.program, timed.backend) == (shown.program.label, shown.target.backend)
        return timed.times if same and timed.at >= shown.started else None  # the program may be another since

    def has_code_of(self, run: Run, frame: str, part: Part) -> bool:
        """Whether the shown run has the code that another has there, so that its launches are the same."""
        mine, other = (one.codes.get((frame, part)) if one else None for one in (self.shown, run))
        return self.shown is run or (mine is not None and other is not None and mine.text == other.text)

    @property
    def files(self) -> frozenset[str]:
        """The files that the shown run's nodes come from, and the program's own: names are told apart among them."""
        for key, graph in (self.shown.graphs if self.shown else {}).items():
            if self._files_of.get(key) is not graph:
                self._files_of[key] = graph
                self._files |= {node.file for node in graph.nodes if node.file}
        program = self.program
        own = os.path.join(program.cwd, program.path) if program and not program.module else ""
        alike = {user_files.real(file) for file in self._files if os.path.basename(file) == os.path.basename(own)}
        known = not os.path.isabs(own) or user_files.real(own) in alike  # one file may be spelled in two ways
        return self._files if known else self._files | {own}

    @property
    def running(self) -> bool:
        return self.live and self.run is not None and self.run.ended is None

    @property
    def graph(self) -> Graph | None:
        return self.shown.graphs.get(self.graph_id) if self.shown and self.graph_id else None

    @property
    def node(self) -> Node | None:
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

    @property
    def has_kernels(self) -> bool:
        """Whether any code came out of the shown run yet."""
        return self.shown is not None and bool(self.shown.codes)

    @property
    def kernels(self) -> list[tuple[Kernel, KernelCall]]:
        """The kernels that compute the selected node, with the call that does."""
        provenance = self.provenance
        return provenance.kernels_of(self.selected) if provenance and self.selected else []

    @property
    def marked(self) -> frozenset[str]:
        """Names of the shown graph's nodes that the chosen launch or kernel (or the selected node's first) computes."""
        kernel = self.kernel or next((kernel for kernel, _ in self.kernels), None)
        return self._computed(kernel) if kernel is not None else frozenset()

    def computed_by(self, wanted: Callable[[Kernel], bool]) -> frozenset[str]:
        """Names of the shown graph's nodes that these kernels of the shown run compute."""
        kernels = self.shown.kernels if self.shown else []
        return frozenset().union(*(self._computed(kernel) for kernel in kernels if wanted(kernel)))

    def _computed(self, kernel: Kernel) -> frozenset[str]:
        provenance = self.provenance
        if provenance is None or self.graph_id is None:
            return frozenset()
        graph_id, computed = self.graph_id, provenance.nodes_of(kernel)
        if self.launch is not None:
            computed = [node for node in computed if node.name in self.launch.nodes]
        found = {place.name for node in computed for place in provenance.counterparts(node, graph_id)}
        found |= {node.name for node in computed if node.graph == graph_id}
        return frozenset(found)

    @property
    def level(self) -> list[Graph]:
        """The graphs of the shown run at the shown stage's level, over all its frames."""
        return stages.level(self.shown, self.graph_id) if self.shown and self.graph_id else []

    @property
    def stages(self) -> list[GraphId]:
        """The graphs of the shown frame, in the order of the stages."""
        return stages.of_frame(self.shown, self.graph_id.frame) if self.shown and self.graph_id else []

    @property
    def frames(self) -> list[str]:
        """Ids of the frames that have a graph, in the order in which they were compiled."""
        return stages.frames(self.shown) if self.shown else []

    @property
    def broken_elsewhere(self) -> Graph | None:
        """Where the shown graph breaks no rule: the nearest graph that does; None if none does, or the shown one."""
        graph = self.graph
        if graph is None or self.shown is None or len(self.findings(graph)):
            return None
        return next((other for other in stages.nearest(self.shown, graph.id) if len(self.findings(other))), None)

    def findings(self, graph: Graph) -> Findings:
        """What the rules in force find in one graph; `verdicts.change(graph)` is what the last edit changed."""
        return self.verdicts.of(graph)

    @property
    def counts(self) -> dict[Severity, int]:
        """Severity -> violations at the shown level, the severest first; those with none are not there."""
        return totals([self.findings(graph) for graph in self.level])

    @property
    def uncounted(self) -> list[Question]:
        """What to count for the shown level."""
        found = [check for graph in self.level if self.costs.lacks(check := self.findings(graph))]
        return [Question(check, self._alone(check), self.verdicts.late(check.graph)) for check in found]

    def _alone(self, check: Findings) -> dict[str, Findings]:
        return {rule.name: self.verdicts.alone(check.graph, rule) for rule in pads(check)}

    @property
    def peak(self) -> tuple[Graph, MemoryProfile] | None:
        """The graph of the shown level that needs the most memory at once; None while one of them is not known."""
        known = [(graph, profile) for graph in self.level if (profile := self.costs.profile(graph)) is not None]
        return max(known, key=lambda one: one[1].peak_bytes) if known and len(known) == len(self.level) else None

    @property
    def priced(self) -> list[tuple[Findings, Priced]] | None:
        """What the rules cost each graph of the shown level; None while that is not known of one."""
        found = [(check := self.findings(graph), self.costs.priced(check)) for graph in self.level]
        known = [(check, priced) for check, priced in found if priced is not None]
        return known if len(known) == len(found) else None

    def violations_of(self, node: NodeId) -> list[Violation]:
        """What one node breaks, under the rules in force."""
        graph = self.shown.graphs.get(node.graph) if self.shown else None
        return self.findings(graph).violations_of(node.name) if graph else []

    @property
    def elapsed(self) -> float:
        """Seconds that the latest run has taken so far, or took."""
        run = self.run
        if run is None:
            return 0.0
        return max(0.0, time.time() - run.started) if self.running else run.seconds

    @property
    def typical(self) -> float | None:
        """Seconds that the last finished run for the same backend took, or None if there was none."""
        run = self.run
        done = [
            past.seconds
            for past in self.history.runs.values()
            if run is not None and past is not run and past.target.backend == run.target.backend
            if past.verdict in ("clean", "violations") and past.seconds > 0
        ]
        return done[-1] if done else None
