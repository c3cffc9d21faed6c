"""Match the nodes, kernels and user's lines that are the same computation.

Torch says which nodes of one graph came from which of the graph above it (`Links`), and which post-grad nodes each
kernel call computes. The rest is walking. Indexes are built when first needed, and again when the run has grown.
"""

import re
from collections import deque
from collections.abc import Iterable
from functools import cached_property

from idbg.schema.code import Kernel, KernelCall
from idbg.schema.graphs import Graph, GraphId, NodeId, Part
from idbg.schema.runs import Run

_MOST_COMPARED = 20_000  # nodes of a graph: a key waits for it
_NAME = re.compile(r"[A-Za-z_]\w*")
_Step = tuple[GraphId, GraphId]  # from one graph to the next
_Onward = dict[str, list[str]]  # node name -> the names that it leads to in the next graph
_Use = tuple[Kernel, KernelCall]


class Provenance:
    """Answers for one run, which may still be growing."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._index = _Index(run)

    def kernels_of(self, node: NodeId) -> list[_Use]:
        """The kernels that compute this node, each with the call that does (a kernel called twice is there twice).

        An op of a library is first: a generated kernel beside it prepares its inputs or goes on with its result. A node
        that torch merged with an equal one has the kernels of that.
        """
        index = self._fresh()
        calls = index.calls(node)
        if not calls and (equal := index.first_equal(node)) is not None:
            calls = index.calls(equal)
        return sorted(calls.values(), key=lambda use: use[0].language != "extern")

    def nodes_of(self, kernel: Kernel) -> list[NodeId]:
        """The post-grad nodes that the kernel computes, over all its calls."""
        graph = GraphId(kernel.frame, "post_grad", kernel.part)
        return [NodeId(graph, name) for name in kernel.nodes]

    def counterparts(self, node: NodeId, graph: GraphId) -> list[NodeId]:
        """The nodes of `graph`, another of the same frame, that are the same computation, in that graph's order."""
        index = self._fresh()
        path = index.path(node.graph, graph)
        if path is None:
            return []
        names = [node.name]
        for step in path:
            names = _onward(names, index.onward(step))
        if len(names) > 1:
            order = index.order(graph)
            names.sort(key=lambda name: order.get(name, len(order)))
        return [NodeId(graph, name) for name in names]

    def nodes_at(self, file: str, line: int) -> list[NodeId]:
        """The nodes of every graph that come from this line of the user's, graph by graph."""
        index = self._fresh()
        return [NodeId(graph, name) for graph, names in index.lines.get((file, line), ()) for name in names]

    def _fresh(self) -> "_Index":
        if self._index.size != _size(self._run):
            self._index = _Index(self._run)
        return self._index


class _Index:
    """The run's links as dictionaries, as far as it had come when this was made."""

    def __init__(self, run: Run) -> None:
        self.size = _size(run)
        self._run = run
        self._orders: dict[GraphId, dict[str, int]] = {}
        self._paths: dict[_Step, list[_Step] | None] = {}
        self._onward: dict[_Step, _Onward] = {}
        self._equal: dict[GraphId, dict[str, str]] = {}

    @cached_property
    def steps(self) -> list[_Step]:
        """(from, to) for every pair of graphs that links join, in both directions."""
        joined = [(links.above, links.below) for links in self._run.links]
        return list(dict.fromkeys(step for above, below in joined for step in ((above, below), (below, above))))

    def onward(self, step: _Step) -> _Onward:
        """The names that each node leads to, from one graph to the next."""
        if step not in self._onward:
            onward = self._onward[step] = {}
            for links in self._run.links:
                if step == (links.above, links.below):
                    for above, below in links.pairs:
                        onward.setdefault(above, []).append(below)
                elif step == (links.below, links.above):
                    for above, below in links.pairs:
                        onward.setdefault(below, []).append(above)
        return self._onward[step]

    @cached_property
    def below_of(self) -> dict[GraphId, list[GraphId]]:
        lower_graphs: dict[GraphId, list[GraphId]] = {}
        for links in self._run.links:
            if links.below not in (known := lower_graphs.setdefault(links.above, [])):
                known.append(links.below)
        return lower_graphs

    @cached_property
    def uses(self) -> dict[tuple[str, Part], dict[str, list[_Use]]]:
        """(frame, part) -> post-grad node -> the kernel calls that compute it."""
        uses: dict[tuple[str, Part], dict[str, list[_Use]]] = {}
        for key, code in self._run.codes.items():
            by_node = uses.setdefault(key, {})
            for kernel in code.kernels:
                for call in kernel.calls:
                    for name in call.nodes:
                        by_node.setdefault(name, []).append((kernel, call))
        return uses

    @cached_property
    def lines(self) -> dict[tuple[str, int], list[tuple[GraphId, list[str]]]]:
        """(file, line) -> the names that come from it, for each graph."""
        lines: dict[tuple[str, int], list[tuple[GraphId, list[str]]]] = {}
        for graph in self._run.graphs.values():
            here: dict[tuple[str, int], list[str]] = {}
            for node in graph.nodes:
                if node.file:
                    here.setdefault((node.file, node.line), []).append(node.name)
            for place, names in here.items():
                lines.setdefault(place, []).append((graph.id, names))
        return lines

    def calls(self, node: NodeId) -> dict[tuple[str, str, int], _Use]:
        """The calls that compute what the node became, by kernel, handle and line."""
        calls: dict[tuple[str, str, int], _Use] = {}
        for graph, names in self.below(node):
            uses = self.uses.get((graph.frame, graph.part), {})
            for name in names:
                for kernel, call in uses.get(name, ()):
                    calls.setdefault((kernel.name, call.handle, call.line), (kernel, call))
        return calls

    def first_equal(self, node: NodeId) -> NodeId | None:
        """The first node of its graph that computes the same of the same, with which torch merges it; None of none."""
        if node.graph not in self._equal:
            self._equal[node.graph] = _equal_nodes(self._run.graphs.get(node.graph))
        first = self._equal[node.graph].get(node.name, node.name)
        return NodeId(node.graph, first) if first != node.name else None

    def below(self, node: NodeId) -> list[tuple[GraphId, list[str]]]:
        """The post-grad nodes that this node became, for each post-grad graph that it leads down to."""
        lowest: list[tuple[GraphId, list[str]]] = []
        waiting = deque([(node.graph, [node.name])])
        while waiting:
            graph, names = waiting.popleft()
            if graph.stage == "post_grad":
                lowest.append((graph, names))
                continue
            for lower in self.below_of.get(graph, ()):
                if reached := _onward(names, self.onward((graph, lower))):
                    waiting.append((lower, reached))
        return lowest

    def path(self, start: GraphId, end: GraphId) -> list[_Step] | None:
        """The fewest steps from graph to graph: up to one that both came from, and down. None if no links join them."""
        if (start, end) not in self._paths:
            self._paths[start, end] = _shortest(start, end, self.steps)
        return self._paths[start, end]

    def order(self, graph: GraphId) -> dict[str, int]:
        """Node name -> its place in the graph."""
        if graph not in self._orders:
            known = self._run.graphs.get(graph)
            self._orders[graph] = {node.name: place for place, node in enumerate(known.nodes)} if known else {}
        return self._orders[graph]


def _equal_nodes(graph: Graph | None) -> dict[str, str]:
    """Each node that computes the same as one before it -> the first such; none of a graph of very many."""
    first: dict[tuple[str, str], str] = {}
    equal: dict[str, str] = {}
    for node in graph.nodes if graph is not None and len(graph.nodes) <= _MOST_COMPARED else ():
        if node.op.startswith("call"):
            arguments = _NAME.sub(lambda found: equal.get(found[0], found[0]), node.args)
            if (known := first.setdefault((node.target, arguments), node.name)) != node.name:
                equal[node.name] = known
    return equal


def _size(run: Run) -> tuple[int, int, int]:
    return len(run.graphs), len(run.links), len(run.codes)


def _onward(names: Iterable[str], steps: _Onward) -> list[str]:
    return list(dict.fromkeys(other for name in names for other in steps.get(name, ())))


def _shortest(start: GraphId, end: GraphId, steps: Iterable[_Step]) -> list[_Step] | None:
    neighbours: dict[GraphId, list[GraphId]] = {}
    for one, other in steps:
        neighbours.setdefault(one, []).append(other)
    paths: dict[GraphId, list[_Step]] = {start: []}
    waiting = deque([start])
    while waiting and end not in paths:
        here = waiting.popleft()
        for there in neighbours.get(here, ()):
            if there not in paths:
                paths[there] = [*paths[here], (here, there)]
                waiting.append(there)
    return paths.get(end)
