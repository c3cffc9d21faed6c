"""Find the compiler's decisions about a node, kernel or line of the shown run, in groups, the nearest first."""

from collections.abc import Callable, Sequence

from idbg.reports.decisions import decisions
from idbg.schema.decisions.decided import Decision
from idbg.schema.graphs import GraphId, NodeId, Part
from idbg_tui.state.state import State

Group = tuple[str, list[Decision]]
"""What they are about, in words, and the decisions."""
_Is = Callable[[Decision], bool]


def of_node(state: State, node: NodeId) -> list[Group]:
    """Those about the node, or what is the same computation in other stages, and its kernels; then those about its
    line; then those about the whole graph or frame that it is in.
    """
    run, provenance = state.shown, state.provenance
    if run is None or provenance is None:
        return []
    graph = run.graphs.get(node.graph)
    known = graph.by_name.get(node.name) if graph is not None else None
    others = [id for id in run.graphs if id.frame == node.graph.frame and id != node.graph]
    same = {node, *(one for other in others for one in provenance.counterparts(node, other))}
    kernels = {(kernel.frame, kernel.name) for kernel, _ in provenance.kernels_of(node)}
    return _grouped(
        decisions(run),
        [
            (f"about {node.name}", lambda one: not same.isdisjoint(one.nodes) or not kernels.isdisjoint(one.kernels)),
            ("about its line", _at(known.file, known.line) if known is not None else _never),
            (f"about all of frame {node.graph.frame}", _whole(node.graph.frame)),
        ],
    )


def of_kernel(state: State, frame: str, part: Part, name: str) -> list[Group]:
    """Those about the kernel and the nodes that it computes; then those about its whole frame."""
    run, provenance = state.shown, state.provenance
    if run is None or provenance is None:
        return []
    kernels = [one for one in run.kernels if (one.frame, one.part, one.name) == (frame, part, name)]
    below = [node for kernel in kernels for node in provenance.nodes_of(kernel)]
    graphs = [id for id in run.graphs if id.frame == frame and id != GraphId(frame, "post_grad", part)]
    nodes = {*below, *(one for node in below for graph in graphs for one in provenance.counterparts(node, graph))}
    mine = (frame, name)
    return _grouped(
        decisions(run),
        [
            (f"about {name}", lambda one: mine in one.kernels),
            ("about its nodes", lambda one: not nodes.isdisjoint(one.nodes)),
            (f"about all of frame {frame}", _whole(frame)),
        ],
    )


def of_line(state: State, file: str, line: int) -> list[Group]:
    """Those about the user's line, and about the nodes that were made there."""
    run, provenance = state.shown, state.provenance
    if run is None or provenance is None:
        return []
    nodes = set(provenance.nodes_at(file, line))
    return _grouped(
        decisions(run),
        [("about this line", _at(file, line)), ("about its nodes", lambda one: not nodes.isdisjoint(one.nodes))],
    )


def _grouped(found: Sequence[Decision], kinds: Sequence[tuple[str, _Is]]) -> list[Group]:
    """Each decision in the first group that takes it; groups that have none are left out."""
    groups: list[Group] = [(words, []) for words, _ in kinds]
    for one in found:
        place = next((place for place, (_, takes) in enumerate(kinds) if takes(one)), None)
        if place is not None:
            groups[place][1].append(one)
    return [group for group in groups if group[1]]


def _at(file: str, line: int) -> _Is:
    return lambda one: bool(file) and (one.file, one.line) == (file, line)


def _whole(frame: str) -> _Is:
    """Those that name no node, kernel or line: they are about all of the frame."""
    return lambda one: one.frame == frame and not (one.nodes or one.kernels or one.file)


def _never(_: Decision) -> bool:
    return False
