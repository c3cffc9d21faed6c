"""Derive facts from a State: about the selected node, the shown graphs, the latest run."""

import os
import time
from collections.abc import Callable

from idbg.accelerators.parse import parse
from idbg.analysis.liveness import MemoryProfile
from idbg.analysis.outline import ModuleHeading
from idbg.checking.check import ONLY_PRINTED
from idbg.checking.rule_costs import CostQuestion, RuleCosts, pads
from idbg.checking.tally import Tally
from idbg.constraints import Findings
from idbg.schema.code import CompilerStage, Kernel, KernelCall
from idbg.schema.diff import KernelError
from idbg.schema.errors import AcceleratorError
from idbg.schema.graphs import Graph, GraphId, NodeId, Part
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.kernel_times import KernelTime, KernelTimes
from idbg.schema.programs import NO_ACCELERATOR, SUCCESSFUL
from idbg.schema.runs import Run
from idbg.schema.violations import Severity, Violation
from idbg.views.facts import Launch
from idbg.views.module import ModuleContext
from idbg.views.node import NodeContext
from idbg.views.rule_findings import Checked
from idbg_tui.state import stages
from idbg_tui.state.rule_checks import totals
from idbg_tui.state.state import State

# ---------------------------------------------------------------- the latest run


def elapsed(state: State) -> float:
    """Seconds that the latest run has taken so far, or took; 0.0 where there is none."""
    run = state.run
    if run is None:
        return 0.0
    return max(0.0, time.time() - run.started) if state.running else run.seconds


def working(state: State) -> float:
    """The same of a run that goes on without the start of its worker, which no run's seconds count."""
    run, worker = state.run, state.history.worker
    if run is None or worker is None or not state.running:
        return 0.0 if state.running else elapsed(state)
    return elapsed(state) - max(worker.at - run.started, 0.0)


def usual_seconds(state: State) -> float | None:
    """Seconds that the last finished run for the same backend took, else those before this session; None of none."""
    run = state.run
    done = [
        past.seconds
        for past in state.history.runs.values()
        if run is not None and past is not run and past.target.backend == run.target.backend
        if past.verdict in SUCCESSFUL and past.seconds > 0
    ]
    earlier = [state.typical[phase] for phase in ("program", "run") if phase in state.typical]
    return done[-1] if done else sum(earlier) if "run" in state.typical else None


def explained_run(state: State) -> Run | None:
    """The run whose decisions are shown: the latest, but for one that goes on and has not come as far as the shown."""
    run, shown = state.run, state.shown
    if run is None or shown is None or run is shown or not state.running:
        return run
    return run if len(run.frames) >= len(shown.frames) else shown


def earlier_runs(state: State, run: Run) -> tuple[Run, ...]:
    """The runs of the same program for the same backend that came before, and ended by themselves."""
    return tuple(
        past
        for past in state.history.runs.values()
        if past.number < run.number and past.verdict in SUCCESSFUL
        if (past.program, past.backend) == (run.program, run.backend)
    )


def ended_runs(state: State) -> list[Run]:
    """The runs that came to an end by themselves, in order."""
    return [run for run in state.history.runs.values() if run.verdict != "waiting"]


def has_other_rules(state: State, run: Run) -> bool:
    """Whether the rules were edited since the run: its own verdict is then of the rules before."""
    if not run.target.rules or state.accelerator is None:
        return False
    try:
        return parse(run.target.rules) != state.accelerator
    except AcceleratorError:
        return True


# ---------------------------------------------------------------- comparisons and measurements


def compared_run(state: State) -> Run | None:
    """The run whose comparison is shown: the last that has one, or the one that the user chose."""
    chosen = state.history.runs.get(state.comparison)
    if chosen is not None and chosen.diff is not None:
        return chosen
    return next((run for run in reversed(state.history.runs.values()) if run.diff is not None), None)


def error_of(state: State, kernel: Kernel, call: KernelCall) -> KernelError | None:
    """What the last comparison observed of a launch, if it was of the run that is shown."""
    compared = compared_run(state)
    report = compared.diff if compared is not None and compared is state.shown else None
    return state.launch_errors.find(report.kernels, kernel, call) if report is not None else None


def kernel_times(state: State) -> KernelTimes | None:
    """The times of the last timed kernels, if they are of the shown run's program and backend."""
    timed, shown = state.history.kernels, state.shown
    if timed is None or timed.times is None or shown is None:
        return None
    same = (timed.program, timed.backend) == (shown.program.label, shown.backend)
    return timed.times if same and timed.at >= shown.started else None  # the program may be another since


def time_of(state: State, kernel: Kernel, call: KernelCall) -> KernelTime | None:
    """How long a launch takes, if the kernels of the shown run's program and backend were timed."""
    times = kernel_times(state)
    return state.launch_times.find(times.kernels, kernel, call) if times is not None else None


def has_code_of(state: State, run: Run, frame: str, part: Part) -> bool:
    """Whether the shown run has the code that another has there, so that its launches are the same."""
    mine, other = (one.codes.get((frame, part)) if one else None for one in (state.shown, run))
    return state.shown is run or (mine is not None and other is not None and mine.text == other.text)


# ---------------------------------------------------------------- the selected node and the chosen kernel


def violations_of(state: State, node: NodeId) -> list[Violation]:
    """What one node breaks, under the rules in force."""
    graph = state.shown.graphs.get(node.graph) if state.shown else None
    return state.checks.findings(graph).violations_of(node.name) if graph else []


def selected_severities(state: State) -> list[Severity]:
    """What the selected node breaks, or the nodes of the selected module, each severity once."""
    if state.heading is not None and state.graph is not None:
        return list(Tally(state.checks.findings(state.graph)).within(*state.heading.span))
    broken = violations_of(state, state.selected) if state.selected else []
    return list(dict.fromkeys(violation.severity for violation in broken))


def launches_of_node(state: State) -> list[tuple[Kernel, KernelCall]]:
    """The kernels that compute the selected node, each with the call that does."""
    provenance = state.provenance
    return provenance.kernels_of(state.selected) if provenance and state.selected else []


def shown_kernel(state: State) -> Kernel | None:
    """The kernel chosen by hand, or the first of those that compute the selected node."""
    return state.kernel or next((kernel for kernel, _ in launches_of_node(state)), None)


def shown_edit(state: State, kernel: Kernel) -> KernelEdit | None:
    """The version of this kernel of the shown run that was chosen; None for the original."""
    return state.kernel_versions.get((state.shown.number, *kernel.key)) if state.shown is not None else None


def marked_nodes(state: State) -> frozenset[str]:
    """Names of the shown graph's nodes that the chosen launch or kernel (or the selected node's first) computes."""
    kernel = shown_kernel(state)
    return _computed_by(state, kernel) if kernel is not None else frozenset()


def nodes_computed_by(state: State, wanted: Callable[[Kernel], bool]) -> frozenset[str]:
    """Names of the shown graph's nodes that these kernels of the shown run compute."""
    kernels = state.shown.kernels if state.shown else []
    return frozenset().union(*(_computed_by(state, kernel) for kernel in kernels if wanted(kernel)))


def _computed_by(state: State, kernel: Kernel) -> frozenset[str]:
    provenance, graph_id = state.provenance, state.graph_id
    if provenance is None or graph_id is None:
        return frozenset()
    computed = provenance.nodes_of(kernel)
    if state.launch is not None:
        computed = [node for node in computed if node.name in state.launch.nodes]
    names = {place.name for node in computed for place in provenance.counterparts(node, graph_id)}
    return frozenset(names | {node.name for node in computed if node.graph == graph_id})


def about_node(state: State) -> NodeContext | None:
    """What is known around the selected node; None where none is selected."""
    graph, node, run = state.graph, state.node, state.shown
    if graph is None or node is None or run is None:
        return None
    findings, compared = state.checks.findings(graph), compared_run(state)
    return NodeContext(
        graph,
        node,
        run,
        findings,
        state.provenance,
        [_launch(state, *each) for each in launches_of_node(state)],
        stages_of_frame(state),
        state.costs.of_rules(findings),
        state.costs.profile(graph),
        compared.diff if compared is run else None,
    )


def about_module(state: State) -> ModuleContext | None:
    """What is known of the module that is selected; None where a node is, or nothing."""
    return module_context(state, state.heading) if state.heading is not None else None


def module_context(state: State, heading: ModuleHeading) -> ModuleContext | None:
    """What is known of a module of the shown graph."""
    graph, run = state.graph, state.shown
    if graph is None or run is None:
        return None
    compared = compared_run(state)
    about = ModuleContext(
        graph,
        heading,
        state.checks.findings(graph),
        has_kernels(state),
        memory=state.costs.profile(graph),
        report=compared.diff if compared is run else None,
        keys=True,
    )
    within = about.calls(state.provenance) if state.provenance is not None else ()
    return about._replace(launches=[_launch(state, *each) for each in within])


def _launch(state: State, kernel: Kernel, call: KernelCall) -> Launch:
    return Launch(kernel, call, time_of(state, kernel, call), error_of(state, kernel, call))


# ---------------------------------------------------------------- the run whose graphs are shown


def has_kernels(state: State) -> bool:
    """Whether any code came out of the shown run yet."""
    return state.shown is not None and bool(state.shown.codes)


def source_files(state: State) -> frozenset[str]:
    """The files that the shown run's nodes come from, and the program's own: file names are made unique among them."""
    program = state.program
    own = os.path.join(program.cwd, program.path) if program and not program.module else ""
    return state.source_files.among(state.shown.graphs.values() if state.shown else (), own)


def frames(state: State) -> list[str]:
    """Ids of the frames that have a graph, in the order in which they were compiled."""
    return stages.frames(state.shown) if state.shown else []


def stages_of_frame(state: State) -> list[GraphId]:
    """The graphs of the shown frame, in the order of the stages."""
    return stages.of_frame(state.shown, state.graph_id.frame) if state.shown and state.graph_id else []


def compiler_stages(state: State) -> list[CompilerStage]:
    """The stages of other compilers of the shown frame, in the order in which they came."""
    frame = state.graph_id.frame if state.graph_id else ""
    return [stage for stage in state.shown.stages.values() if stage.frame in ("", frame)] if state.shown else []


def shown_stage(state: State) -> CompilerStage | None:
    """The stage of another compiler that was chosen, or the first of the shown frame."""
    stages = compiler_stages(state)
    chosen = (stage for stage in stages if stage.key == state.stage)
    return next(chosen, stages[0] if stages else None)


def nodes_in_stage(state: State, stage: CompilerStage) -> list[str]:
    """The names that the selected node has in the graph that a stage's links name."""
    node, provenance = state.selected, state.provenance
    if node is None or stage.graph is None:
        return []
    if node.graph == stage.graph:
        return [node.name]
    return [same.name for same in provenance.counterparts(node, stage.graph)] if provenance else []


def node_at(state: State, stage: CompilerStage, line: int) -> NodeId | None:
    """The node of a stage's line: in the shown graph, else in the one that the stage's links name."""
    names = state.stage_lines.nodes(stage, line)
    if not names or stage.graph is None:
        return None
    for name in names:
        node = NodeId(stage.graph, name)
        if state.graph_id in (None, stage.graph) or state.provenance is None:
            return node
        if same := state.provenance.counterparts(node, state.graph_id):
            return same[-1]
    return NodeId(stage.graph, names[0])


def level(state: State) -> list[Graph]:
    """The graphs of the shown run at the shown stage's level, over all its frames."""
    return stages.level(state.shown, state.graph_id) if state.shown and state.graph_id else []


# ---------------------------------------------------------------- what the rules find, and what they cost


def counts(state: State) -> dict[Severity, int]:
    """Severity -> violations at the shown level, the severest first; those with none are not there."""
    return totals([state.checks.findings(graph) for graph in level(state)])


def counts_of_graph(state: State) -> dict[Severity, int]:
    """The same of the shown graph alone."""
    return totals([state.checks.findings(state.graph)]) if state.graph is not None else {}


def is_not_counted(state: State) -> bool:
    """Whether what the rules find at the shown level is not in the run's number: torch only prints these graphs, which
    a run checks only with the rules that name their stage.
    """
    graphs = [graph for graph in level(state) if graph.id.stage in ONLY_PRINTED]
    return any(not group.rule.stages for graph in graphs for group in state.checks.findings(graph).groups)


def counts_of_other_levels(state: State) -> list[tuple[str, dict[Severity, int]]]:
    """Each other level of stages that breaks a rule in force: its name ("forward + backward"), and its counts."""
    if state.shown is None or state.accelerator is None:
        return []
    here = {graph.id for graph in level(state)}
    others = []
    for of_level in stages.LEVELS:
        graphs = [graph for graph in state.shown.graphs.values() if graph.id.stage in of_level and graph.id not in here]
        broken = totals([state.checks.findings(graph) for graph in graphs])
        if broken:
            others.append((stages.names_of(graphs), broken))
    return others


def broken_elsewhere(state: State) -> Graph | None:
    """Where the shown graph breaks no rule: the nearest graph that does; None if none does, or the shown one."""
    graph = state.graph
    if graph is None or state.shown is None or len(state.checks.findings(graph)):
        return None
    others = stages.nearest(state.shown, graph.id)
    return next((other for other in others if len(state.checks.findings(other))), None)


def is_without_rules(state: State) -> bool:
    """Whether nobody chose an accelerator, nor wrote a rule: nothing is judged."""
    own = state.accelerator
    return own is not None and own.name == NO_ACCELERATOR and not own.rules


def is_clean(state: State) -> bool:
    """Whether green may be shown: no stage breaks a rule, and nothing else is known to be wrong, or not known."""
    run = state.run
    if run is None or not level(state) or state.accelerator is None or counts(state):
        return False
    if state.history.deciding_run is not run or state.history.wrong_rows:
        return False
    fine = run.verdict in ("clean", "compiled") or (
        run.verdict == "violations" and run.failure is None and has_other_rules(state, run)
    )
    return fine and not counts_of_other_levels(state)


def cost_questions(state: State) -> list[CostQuestion]:
    """What is not known yet of the costs of the shown level."""
    checks = [check for graph in level(state) if state.costs.lacks(check := state.checks.findings(graph))]
    return [
        CostQuestion(
            check,
            {rule.name: state.checks.with_only(check.graph, rule) for rule in pads(check)},
            state.checks.postponed(check.graph),
        )
        for check in checks
    ]


def peak(state: State) -> tuple[Graph, MemoryProfile] | None:
    """The graph of the shown level that needs the most memory at once; None while one of them is not known."""
    graphs = level(state)
    known = [(graph, profile) for graph in graphs if (profile := state.costs.profile(graph)) is not None]
    return max(known, key=lambda one: one[1].peak_bytes) if known and len(known) == len(graphs) else None


def checked(state: State) -> list[Checked]:
    """What the rules find in each graph of the shown level, with what is known of its memory and costs."""
    return [
        Checked(
            found := state.checks.findings(graph),
            state.checks.change(graph),
            state.costs.of_rules(found),
            state.costs.profile(graph),
        )
        for graph in level(state)
    ]


def rule_costs(state: State) -> list[tuple[Findings, RuleCosts]] | None:
    """What the rules cost each graph of the shown level; None while that is not known of one."""
    checks = [state.checks.findings(graph) for graph in level(state)]
    known = [(check, cost) for check in checks if (cost := state.costs.of_rules(check)) is not None]
    return known if len(known) == len(checks) else None
