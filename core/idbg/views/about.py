"""Find the rows of a run's views that are about a node, a kernel or a line."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from idbg import views
from idbg.analysis.provenance import Provenance
from idbg.schema.decisions import reports
from idbg.schema.graphs import NodeId, Part
from idbg.schema.runs import Run
from idbg.views.tree import Options, Refs, Section, having, kernel_refs

VIEWS = tuple(each.name for each in reports() if each.of != "run")
_OF_FRAMES = [
    each.name for each in reports() if each.of == "frame"
]  # their rows without a node, a kernel or a line are about all of a frame


class Subject(NamedTuple):
    """What rows may be about: nodes, kernels (frame, part, name), lines of the user's, and all of a frame."""

    nodes: frozenset[NodeId]
    kernels: frozenset[tuple[str, Part, str]] = frozenset()
    places: frozenset[tuple[str, int]] = frozenset()
    frame: str = ""

    def is_of(self, refs: Refs, view: str) -> bool:
        """Whether a row of this view with these `refs` is about it."""
        if not (refs.nodes or refs.kernel or refs.file):
            return view in _OF_FRAMES and bool(refs.frame) and refs.frame == self.frame
        if refs.kernel in self.kernels:
            return True
        if refs.nodes and view != "frames":  # a frame's node is the first of many
            return not self.nodes.isdisjoint(refs.nodes)
        return (refs.file, refs.line) in self.places


def node(run: Run, provenance: Provenance, node: NodeId) -> Subject:
    """The node, the same computation in the frame's other graphs, its kernels, its line and its frame."""
    graph = run.graphs.get(node.graph)
    known = graph.by_name.get(node.name) if graph is not None else None
    places = frozenset({(known.file, known.line)} if known is not None and known.file else ())
    kernels = frozenset(kernel_refs(kernel) for kernel, _ in provenance.kernels_of(node))
    return Subject(_in_all_graphs(run, provenance, [node]), kernels, places, node.graph.frame)


def kernel(run: Run, provenance: Provenance, frame: str, part: Part, name: str) -> Subject:
    """The kernel, the nodes that it computes, and its frame."""
    kernels = [one for one in run.kernels if kernel_refs(one) == (frame, part, name)]
    nodes = [node for kernel in kernels for node in provenance.nodes_of(kernel)]
    return Subject(_in_all_graphs(run, provenance, nodes), frozenset({(frame, part, name)}), frame=frame)


def line(provenance: Provenance, file: str, line: int) -> Subject:
    """The user's line, and the nodes that were made there."""
    return Subject(frozenset(provenance.nodes_at(file, line)), places=frozenset({(file, line)}))


def sections(run: Run, subject: Subject) -> Iterator[tuple[str, Section]]:
    """Of each view the rows about it, with those that they are below and the notes on them."""
    for name in VIEWS:
        every = views.section(name, run, Options(everything=True))
        section = having(every, lambda row: subject.is_of(row.refs, name), notes=True)  # noqa: B023  # called now
        if section.body:
            yield name, section


def _in_all_graphs(run: Run, provenance: Provenance, nodes: Iterable[NodeId]) -> frozenset[NodeId]:
    found = set(nodes)
    for each in tuple(found):
        others = (graph for graph in run.graphs if graph.frame == each.graph.frame and graph != each.graph)
        found.update(one for other in others for one in provenance.counterparts(each, other))
    return frozenset(found)
