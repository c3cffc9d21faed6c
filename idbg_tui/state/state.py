"""What is shown? A fold of the session's events, and what the user has selected; no widget, no thread, no torch."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from idbg.accelerators.parse import parse
from idbg.analysis.liveness import MemoryProfile
from idbg.constraints import Findings
from idbg.schema.code import Kernel, KernelCall
from idbg.schema.errors import AcceleratorError
from idbg.schema.events import (
    BenchEnded,
    BenchStarted,
    BenchStepStarted,
    BenchTaskStarted,
    CodeCaptured,
    Compared,
    ErrorsMapped,
    FrameStarted,
    GraphCaptured,
    KernelLowered,
    KernelsTimed,
    LinksCaptured,
    PhaseChanged,
    ReproEnded,
    ReproStarted,
    RowMeasured,
    RulesEdited,
    RulesRefused,
    RunEnded,
    RunStarted,
    SessionEvent,
    SessionOpened,
    SideStarted,
    WorkerDied,
    WorkerStarted,
)
from idbg.schema.graphs import GraphId, NodeId
from idbg.schema.programs import Target
from idbg_tui.state import stages
from idbg_tui.state.benching import Bench, Past
from idbg_tui.state.costs import CostAnswer
from idbg_tui.state.jumps import JumpList
from idbg_tui.state.queries import Known, Rules
from idbg_tui.state.rule_checks import first_broken
from idbg_tui.state.walk import Relation, Walker, next_broken

ONE_EDIT = 2.0  # seconds: edits that follow one another faster are one change of the rules


@dataclass
class State(Known):
    """Everything that the panes show. Only `apply`, `take_cost` and what the user chooses change it."""

    jumps: JumpList = field(default_factory=JumpList)
    walker: Walker = field(default_factory=Walker)
    bench: Bench = field(default_factory=Bench)
    _edited: float = 0.0
    _in_force: str = ""  # the last good rules
    _follow: bool = True  # nobody chose a graph yet: go to the most telling one as it arrives
    _last_in: dict[GraphId, str] = field(default_factory=dict)

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
                if event.target.rules and not self._in_force:  # later ones may be older than the last edit
                    self._take_rules(event.target.rules, event.target.accelerator, event.at)
            case (
                PhaseChanged()
                | SideStarted()
                | Compared()
                | ErrorsMapped()
                | KernelLowered()
                | RunEnded()
                | WorkerStarted()
            ):
                self.versions.run += 1
            case WorkerDied():
                self.versions.run += 1
                self.worker_died = event
            case FrameStarted() | GraphCaptured() | CodeCaptured() | LinksCaptured():
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
            case BenchStarted():
                self.versions.run += 1
                self.bench.waiting, self.bench.failure = 0, None
            case BenchTaskStarted() | BenchStepStarted() | RowMeasured() | KernelsTimed():
                self.versions.run += 1
            case BenchEnded():
                self.versions.run += 1
                self.bench.failure, self.cancelling = event.failure, False
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
            self.kernel = self.launch = None
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
        if isinstance(answer, MemoryProfile) and self.verdicts.weighed(graph):
            self.versions.rules += 1

    def take_past(self, past: Past) -> None:
        """Take in what was measured before."""
        self.bench.past = past
        self.versions.run += 1

    @property
    def measuring(self) -> bool:
        return self.live and self.history.rows_left > 0

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

    def choose_kernel(self, frame: str, part: str, name: str, handle: str = "", line: int = 0) -> bool:
        """Mark a kernel's nodes, or those of one launch; select the first one, unless the selected node is one of them.

        A launch that the shown graph has no node of is shown in its post-grad graph. False if there is no such kernel
        or launch.
        """
        provenance = self.provenance
        kernels = self.shown.kernels if self.shown else []
        kernel = next((k for k in kernels if (k.frame, k.part, k.name) == (frame, part, name)), None)
        if kernel is None or provenance is None or self.shown is None:
            return False
        launch = next((call for call in kernel.calls if (call.handle == handle if handle else call.line == line)), None)
        if launch is None and (handle or line):
            return False
        self._follow = False
        self._mark(kernel, launch)
        below = GraphId(kernel.frame, "post_grad", kernel.part)
        if launch is not None and launch.nodes and not self.marked and below in self.shown.graphs:
            self._show_graph(below)
            self._mark(kernel, launch)
        marked, graph = self.marked, self.graph
        if graph is not None and marked and (self.selected is None or self.selected.name not in marked):
            first = next(node.name for node in graph.nodes if node.name in marked)
            self.selected = graph.node_id(first)
        return True

    def _mark(self, kernel: Kernel, launch: KernelCall | None) -> None:
        self.kernel, self.launch = kernel, launch
        self.versions.selection += 1

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
        self.kernel = self.launch = None
