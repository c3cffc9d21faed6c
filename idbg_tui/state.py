"""What is shown? A fold of the session's events, and what the user has selected; no widget, no thread, no torch."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from idbg.accelerator import Accelerator, parse
from idbg.analysis.provenance import Provenance
from idbg.constraints import Findings
from idbg.errors import AcceleratorError
from idbg.events import (
    CodeCaptured,
    GraphCaptured,
    LinksCaptured,
    PhaseChanged,
    ReproEnded,
    ReproStarted,
    RulesEdited,
    RulesRefused,
    RunEnded,
    RunStarted,
    SessionEvent,
    SessionOpened,
    WorkerDied,
    WorkerStarted,
)
from idbg.records import Graph, GraphId, Kernel, KernelCall, Node, NodeId, Program, Severity, Target, Violation
from idbg.run import History, Run
from idbg_tui import stages
from idbg_tui.jumps import JumpList
from idbg_tui.verdicts import Verdicts, first_broken, totals
from idbg_tui.walk import Relation, Walker, next_broken

ONE_EDIT = 2.0  # seconds: edits that follow one another faster are one change of the rules


@dataclass
class Versions:
    """Counters that only grow: a pane repaints when one that it shows has changed."""

    run: int = 0  # a run began, ended or changed phase
    graphs: int = 0  # the shown run, its graphs, links or kernels
    selection: int = 0  # graph, node, kernel
    rules: int = 0  # the text, its error, what was checked
    log: int = 0  # any event


@dataclass(frozen=True)
class Rules:
    """The rules' text as it stands in the editor. With an `error` the last good rules stay in force."""

    text: str = ""
    origin: str = ""
    error: str = ""
    line: int = 0
    edits: int = 0


@dataclass
class State:
    """Everything that the panes show. `apply` and the `choose_*` methods are the only ways to change it."""

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
    versions: Versions = field(default_factory=Versions)
    verdicts: Verdicts = field(default_factory=Verdicts)
    jumps: JumpList = field(default_factory=JumpList)
    walker: Walker = field(default_factory=Walker)
    repro: ReproEnded | None = None
    repro_running: bool = False
    cancelling: bool = False
    worker_died: WorkerDied | None = None
    _edited: float = 0.0
    _in_force: str = ""  # the last good rules
    _follow: bool = True  # nobody chose a graph yet: go to the most telling one as it arrives
    _provenance: tuple[int, Provenance] | None = None
    _last_in: dict[GraphId, str] = field(default_factory=dict)

    # ---------------------------------------------------------------- what is known

    @property
    def run(self) -> Run | None:
        """The latest run, which may still be going on; `shown` is the one whose graphs are on the screen."""
        return self.history.last

    @property
    def running(self) -> bool:
        return self.live and self.run is not None and self.run.verdict is None

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
        """Names of the shown graph's nodes that the chosen kernel (or the selected node's first) computes."""
        kernel = self.kernel or next((kernel for kernel, _ in self.kernels), None)
        provenance = self.provenance
        if kernel is None or provenance is None or self.graph_id is None:
            return frozenset()
        graph_id = self.graph_id
        found = {
            place.name for node in provenance.nodes_of(kernel) for place in provenance.counterparts(node, graph_id)
        }
        found |= {node.name for node in provenance.nodes_of(kernel) if node.graph == graph_id}
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

    # ---------------------------------------------------------------- what happened

    def apply(self, batch: Iterable[SessionEvent]) -> None:
        """Take in what happened, in order."""
        for event in batch:
            self.events.append(event)
            self.history.apply(event)
            self.versions.log += 1
            self._note(event)
        self._settle()

    def _note(self, event: SessionEvent) -> None:
        match event:
            case SessionOpened():
                self.program, self.folder = event.program, event.folder
            case RunStarted():
                self.versions.run += 1
                self.program = event.program
                self.worker_died = None
                self.cancelling = False
                if event.target.rules and event.target.rules != self._in_force:
                    self._take_rules(event.target.rules, event.target.accelerator, event.at)
            case PhaseChanged() | RunEnded() | WorkerStarted():
                self.versions.run += 1
            case WorkerDied():
                self.versions.run += 1
                self.worker_died = event
            case GraphCaptured() | CodeCaptured() | LinksCaptured():
                self.versions.graphs += 1
            case RulesEdited():
                self._take_rules(event.text, event.origin, event.at)
            case RulesRefused():
                self.versions.rules += 1
                self.rules = Rules(event.text, event.origin, event.message, event.line, self.rules.edits)
            case ReproStarted():
                self.versions.run += 1
                self.repro, self.repro_running = None, True
            case ReproEnded():
                self.versions.run += 1
                self.repro, self.repro_running = event, False
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
        self.verdicts.set_rules(self.accelerator.rules, again=at - self._edited < ONE_EDIT)
        self._edited = at

    def _settle(self) -> None:
        """Show the latest run once it has what is on the screen now, and the most telling graph until one is chosen."""
        run = self.run
        if run is None or not run.graphs:
            return
        ready = run.verdict is not None or self.graph_id in run.graphs
        if self.shown is not run and (self.shown is None or not self.shown.graphs or ready):
            self.shown = run
            self.versions.graphs += 1
            self.kernel = None
        assert self.shown is not None
        if self.graph_id not in self.shown.graphs or (self._follow and self.shown is run):
            self._show_graph(stages.most_telling(self.shown))
        elif self.node is None:
            self._select_somewhere()

    # ---------------------------------------------------------------- what the user chose

    def choose(self, node: NodeId, *, jump: bool = False) -> bool:
        """Select a node, and show its graph. False if the shown run has no such node."""
        graph = self.shown.graphs.get(node.graph) if self.shown else None
        if graph is None or node.name not in graph.by_name:
            return False
        self._follow = False
        if jump and self.selected is not None:
            self.jumps.leave(self.selected, node)
        self._select(node)
        return True

    def choose_graph(self, graph: GraphId) -> bool:
        """Show another graph, with the same computation selected where it has one."""
        if self.shown is None or graph not in self.shown.graphs:
            return False
        self._follow = False
        self._show_graph(graph)
        return True

    def choose_kernel(self, frame: str, part: str, name: str) -> bool:
        """Mark a kernel's nodes; select its first one, unless the selected node is one of them."""
        provenance = self.provenance
        kernels = self.shown.kernels if self.shown else []
        kernel = next((k for k in kernels if (k.frame, k.part, k.name) == (frame, part, name)), None)
        if kernel is None or provenance is None:
            return False
        self._follow = False
        self.kernel = kernel
        self.versions.selection += 1
        marked = self.marked
        graph = self.graph
        if graph is not None and marked and (self.selected is None or self.selected.name not in marked):
            first = next(node.name for node in graph.nodes if node.name in marked)
            self.selected = graph.node_id(first)
        return True

    def choose_line(self, file: str, line: int) -> bool:
        """Select the first node of the shown graph that was made at the user's line. False if there is none."""
        provenance = self.provenance
        places = provenance.nodes_at(file, line) if provenance else []
        here = next((place for place in places if place.graph == self.graph_id), None) or next(iter(places), None)
        return here is not None and self.choose(here)

    def walk(self, relation: Relation, turn: int) -> bool:
        """Select the node's first input or user; with `turn` 1 the next after the last step. False if there is none."""
        graph = self.graph
        name = self.walker.step(graph, self.selected.name, relation, turn) if graph and self.selected else None
        return graph is not None and name is not None and self.choose(graph.node_id(name), jump=True)

    def step_broken(self, step: int) -> bool:
        """Select the next node that breaks a rule: in the shown graph, else in the nearest that has one."""
        graph = self.graph
        if graph is None or self.selected is None:
            return False
        other = self.broken_elsewhere
        if other is not None:
            return self.choose(other.node_id(first_broken(other, self.findings(other))), jump=True)
        name = next_broken(graph, self.findings(graph), self.selected.name, step)
        return name is not None and self.choose(graph.node_id(name))

    def step_jump(self, *, back: bool) -> bool:
        """Return to where a jump left from (or went to). False at the end of the list."""
        place = self.jumps.back(self.selected) if back else self.jumps.forward(self.selected)
        return place is not None and self.choose(place)

    def step_stage(self, step: int) -> bool:
        """Show the frame's next (or previous) stage; stops at the ends."""
        return self._step([*self.stages], step)

    def step_frame(self, step: int) -> bool:
        """Show the next (or previous) frame at the same stage, or its most telling one."""
        if self.shown is None or self.graph_id is None:
            return False
        frames, current = self.frames, self.graph_id
        index = frames.index(current.frame) + step
        if not 0 <= index < len(frames):
            return False
        same = GraphId(frames[index], current.stage, current.part)
        return self.choose_graph(same if same in self.shown.graphs else stages.most_telling(self.shown, frames[index]))

    def set_target(self, target: Target) -> None:
        """What the next run is compiled for."""
        if target != self.target:
            self.target = target
            self.versions.run += 1

    def _step(self, graphs: list[GraphId], step: int) -> bool:
        if self.graph_id not in graphs:
            return False
        index = graphs.index(self.graph_id) + step
        return 0 <= index < len(graphs) and self.choose_graph(graphs[index])

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
            broken = first_broken(graph, self.findings(graph))
            computed = next((node for node in graph.nodes if node.op.startswith("call")), graph.nodes[0])
            name = broken or computed.name
        self._select(graph.node_id(name))

    def _select(self, node: NodeId) -> None:
        if node == self.selected and self.kernel is None:
            return
        self.versions.selection += 1
        self._last_in[node.graph] = node.name
        self.selected, self.graph_id = node, node.graph
        self.kernel = None
