"""Select the next violation, stage, frame, kernel or line."""

from idbg.constraints import Findings
from idbg.schema.graphs import Graph, GraphId, Part
from idbg_tui.state import queries, stages
from idbg_tui.state.rule_checks import first_broken
from idbg_tui.state.state import State


def step_broken(state: State, step: int) -> bool:
    """Select the next node that breaks a rule: in the shown graph, else in the nearest that has one."""
    graph = state.graph
    if graph is None or state.selected is None:
        return False
    other = queries.broken_elsewhere(state)
    if other is not None:
        return state.choose(other.node_id(first_broken(other, state.checks.findings(other))), jump=True)
    name = next_broken(graph, state.checks.findings(graph), state.selected.name, step)
    return name is not None and state.choose(graph.node_id(name))


def next_broken(graph: Graph, findings: Findings, name: str, step: int) -> str | None:
    """The next (or previous) node after `name` that breaks a rule, over the end to the beginning; None if none does."""
    broken = findings.broken_nodes()
    if not broken:
        return None
    here = next((index for index, node in enumerate(graph.nodes) if node.name == name), -1)
    if step > 0:
        index = next((place for place in broken if place > here), broken[0])
    else:
        index = next((place for place in reversed(broken) if place < here), broken[-1])
    return graph.nodes[index].name


def step_stage(state: State, step: int) -> bool:
    """Show the frame's next (or previous) stage: graphs, then what other compilers made of them; stops at the ends."""
    graphs, below = queries.stages_of_frame(state), [stage.key for stage in queries.compiler_stages(state)]
    if state.graph_id not in graphs:
        return False
    if state.stage in below:
        index = below.index(state.stage) + step
        return index < len(below) and state.choose_stage(below[index] if index >= 0 else None)
    index = graphs.index(state.graph_id) + step
    if index == len(graphs) and below:
        return state.choose_stage(below[0])
    return 0 <= index < len(graphs) and state.choose_graph(graphs[index])


def step_compiler_stage(state: State, step: int) -> bool:
    """Show the next (or previous) stage of other compilers, from the last on to the first."""
    below = [stage.key for stage in queries.compiler_stages(state)]
    shown = queries.shown_stage(state)
    if shown is None:
        return False
    return state.choose_stage(below[(below.index(shown.key) + step) % len(below)])


def step_frame(state: State, step: int) -> bool:
    """Show the next (or previous) frame at the same stage, or its most telling one; stops at the ends."""
    if state.shown is None or state.graph_id is None:
        return False
    frames, current = stages.frames(state.shown), state.graph_id
    index = frames.index(current.frame) + step
    if not 0 <= index < len(frames):
        return False
    same = GraphId(frames[index], current.stage, current.part)
    return state.choose_graph(same if same in state.shown.graphs else stages.most_telling(state.shown, frames[index]))


def choose_kernel(state: State, frame: str, part: Part, name: str, handle: str = "", line: int = 0) -> bool:
    """Mark a kernel's nodes, or those of one launch; select the first one, unless the selected node is one of them.

    A launch is identified by its `handle`, or by its `line` (1-based, in the wrapper) where Inductor gave none. One
    that the shown graph has no node of is shown in its post-grad graph. False if there is no such kernel or launch.
    """
    shown = state.shown
    kernels = shown.kernels if shown else []
    kernel = next((one for one in kernels if (one.frame, one.part, one.name) == (frame, part, name)), None)
    if shown is None or kernel is None:
        return False
    launch = next((call for call in kernel.calls if (call.handle == handle if handle else call.line == line)), None)
    if launch is None and (handle or line):
        return False
    state.mark_kernel(kernel, launch)
    below = GraphId(kernel.frame, "post_grad", kernel.part)
    if launch is not None and launch.nodes and not queries.marked_nodes(state) and below in shown.graphs:
        state.choose_graph(below)
        state.mark_kernel(kernel, launch)
    marked, graph = queries.marked_nodes(state), state.graph
    if graph is not None and marked and (state.selected is None or state.selected.name not in marked):
        first = next(node.name for node in graph.nodes if node.name in marked)
        state.mark_kernel(kernel, launch, graph.node_id(first))
    return True


def choose_line(state: State, file: str, line: int) -> bool:
    """Select the first node of the shown graph, else of any, that was made at the user's line (1-based). False if there
    is none."""
    provenance = state.provenance
    places = provenance.nodes_at(file, line) if provenance else []
    here = next((place for place in places if place.graph == state.graph_id), None) or next(iter(places), None)
    return here is not None and state.choose(here)
