"""Plan the replay of one launch: the buffers that it reads and writes, and the graph of the nodes that it computes."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from idbg.engine.instrument.wrapper_lines import Launch, Wrapper, read_wrapper
from idbg.engine.kerneldiff.kernel_attribution.definition import Definition, definition_of, only_written
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer, changes_of
from idbg.engine.kerneldiff.kernels.watch import Watch


@dataclass(frozen=True)
class InputSource:
    """Where the value of an input node of the launch's nodes is: in the buffer or graph input `name`, as the launch
    `written` left it (-1: as the graph was called). If the launch itself `takes` the buffer, it is read at the call.
    """

    name: str
    written: int
    takes: bool = True


@dataclass(frozen=True)
class LaunchPlan:
    """One launch of a wrapper, and the buffers that it `writes`. `nodes` is the graph of its nodes, with a placeholder
    for each of `sources`, in that order and with the same names.
    """

    watch: Watch
    wrapper: Wrapper
    number: int
    writes: tuple[NodeBuffer, ...]
    sources: Mapping[str, InputSource]
    nodes: GraphModule

    @property
    def launch(self) -> Launch:
        return self.wrapper.launches[self.number]

    @cached_property
    def steps(self) -> dict[str, int]:
        """Buffers that it reads which hold an intermediate step of a node, and the launches that wrote them."""
        tensors = {node.name for node in self.nodes.graph.nodes if isinstance(node.meta.get("val"), Tensor)}
        if all(source.takes for node, source in self.sources.items() if node in tensors):
            return {}
        known = {source.name for source in self.sources.values()}
        written = {name: self.writer(name, self.number) for name in self.launch.takes if name not in known}
        holding = {one.name for these in self.watch.buffers.values() for one in these}
        return {name: by for name, by in written.items() if by >= 0 and name not in holding}

    @cached_property
    def definition(self) -> Definition:
        """The definition of its kernel in the wrapper's module."""
        return definition_of(self.watch.code.text, self.launch)

    @cached_property
    def output_only(self) -> frozenset[str]:
        """The buffers that it only writes: their previous content must not matter."""
        return only_written(self.launch, self.definition, changes_of(self.watch.graph))

    @cached_property
    def members(self) -> list[tuple[str, str]]:
        """The names that stand for a part of the launch's result, each after the name that it is a part of, with their
        values as Python.
        """
        wanted, found = [buffer.name for buffer in self.writes], dict[str, str]()
        while wanted:
            name = wanted.pop()
            if name in self.wrapper.members and name not in found:
                found[name] = self.wrapper.members[name]
                wanted.append(found[name].partition("[")[0])
        return list(reversed(found.items()))

    @cached_property
    def constants(self) -> dict[str, Tensor]:
        """The tensors of the wrapper's module that its call names."""
        names = [node.id for node in ast.walk(ast.parse(self.launch.text)) if isinstance(node, ast.Name)]
        module = vars(self.watch.graph.module)
        return {
            name: module[name]
            for name in names
            if name not in self.launch.names and isinstance(module.get(name), Tensor)
        }

    def writer(self, name: str, before: int) -> int:
        """The last launch before this one that wrote the buffer; -1 for a value that the graph was called with."""
        points = self.wrapper.writes.get(name, ())
        return max((at for point in points if (at := self.wrapper.points[point].launch) < before), default=-1)

    def readers(self, name: str) -> tuple[int, ...]:
        """The later launches that read the buffer's value, until another one writes to it."""
        points = self.wrapper.writes.get(name, ())
        again = min((at for point in points if (at := self.wrapper.points[point].launch) > self.number), default=None)
        last = len(self.wrapper.launches) if again is None else again + 1
        return tuple(at for at in range(self.number + 1, last) if name in self.wrapper.launches[at].takes)


def placeholders(gm: GraphModule) -> list[Node]:
    """The graph's inputs."""
    return [node for node in gm.graph.nodes if node.op == "placeholder"]


def plan_launch(watch: Watch, number: int) -> LaunchPlan:
    """The plan of this launch of the wrapper. Its graph is empty if none of its buffers holds a node's value."""
    tensors = {*watch.graph.inputs, *(buffer.name for buffer in watch.graph.buffers)}
    wrapper = read_wrapper(watch.code, tensors, changes_of(watch.graph), around=True)
    writes = tuple(
        buffer for point, these in watch.buffers.items() if wrapper.points[point].launch == number for buffer in these
    )
    cut = _Cut(watch, wrapper, number)
    roots = dict.fromkeys(cut.by_name[name] for buffer in writes for name in (buffer.node, *buffer.changes))
    before = {cut.by_name[buffer.node] for buffer in writes if buffer.changes and buffer.node not in buffer.changes}
    sources, inside = cut.between(roots, before)
    ordered = [node for node in cut.order if node in sources]
    return LaunchPlan(
        watch,
        wrapper,
        number,
        writes,
        {node.name: sources[node] for node in ordered},
        _graph(watch.graph.gm, ordered, inside, roots),
    )


class _Cut:
    """Walks from the written nodes to the nodes that the launch reads. `read`: nodes whose values are in the launch's
    own inputs; `known`: nodes whose values are in any buffer or graph input before the launch.
    """

    def __init__(self, watch: Watch, wrapper: Wrapper, number: int) -> None:
        self.watch, self.wrapper, self.number = watch, wrapper, number
        self.order: list[Node] = list(watch.graph.gm.graph.nodes)
        self.by_name = {node.name: node for node in self.order}
        self.read: dict[Node, InputSource] = {}
        self.known: dict[Node, InputSource] = {}
        launch = wrapper.launches[number]
        for name in (*watch.graph.inputs, *wrapper.writes):
            for node, written in self._nodes_in(name):
                self.known.setdefault(node, InputSource(name, written, takes=False))
                if name in launch.takes or name in launch.names:
                    self.read[node] = InputSource(name, written)
        self._closed: dict[Node, bool] = {}

    def _nodes_in(self, name: str) -> Iterable[tuple[Node, int]]:
        """The nodes whose values the buffer holds before the launch, and the launch that wrote it."""
        points = self.wrapper.writes.get(name, [])
        before = [point for point in points if self.wrapper.points[point].launch < self.number]
        inputs = self.watch.graph.inputs
        if not before:
            if name in inputs:
                yield [node for node in self.order if node.op == "placeholder"][inputs.index(name)], -1
            return
        buffer = next(
            (one for one in self.watch.buffers.get(before[-1], ()) if one.name == name and not one.whole), None
        )
        if buffer is not None:
            written = self.wrapper.points[before[-1]].launch
            for node in (buffer.node, *buffer.changes):
                yield self.by_name[node], written

    def between(self, roots: Iterable[Node], before: set[Node]) -> tuple[dict[Node, InputSource], set[Node]]:
        """The input nodes of these roots, and the nodes between both. `before`: nodes that the launch changes in place:
        their old value is an input.
        """
        sources: dict[Node, InputSource] = {}
        inside: set[Node] = set()
        waiting = list(roots)
        first = set(waiting) - (before & self.read.keys())
        while waiting:
            node = waiting.pop()
            if node in inside or node in sources:
                continue
            source = self._source(node) if node not in first or node.op == "placeholder" else None
            if source is not None:
                sources[node] = source
            else:
                inside.add(node)
                waiting += node.all_input_nodes
        return sources, inside

    def _source(self, node: Node) -> InputSource | None:
        if node in self.read:
            return self.read[node]
        if node.op == "placeholder" or not self._is_closed(node):
            return self.known.get(node)
        return None

    def _is_closed(self, node: Node) -> bool:
        """Whether it depends on nothing but what the launch reads, constants and sizes."""
        waiting = [node]
        while waiting:
            each = waiting[-1]
            missing = [one for one in each.all_input_nodes if one not in self._closed and each not in self.read]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            own = each in self.read or not (each.op == "placeholder" and isinstance(each.meta.get("val"), Tensor))
            self._closed[each] = own and (each in self.read or all(self._closed[one] for one in each.all_input_nodes))
        return self._closed[node]


def _graph(gm: GraphModule, sources: Iterable[Node], inside: set[Node], roots: Iterable[Node]) -> GraphModule:
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in sources:
        copies[node] = graph.create_node("placeholder", node.name, name=node.name)
        copies[node].meta = dict(node.meta)
    for node in gm.graph.nodes:
        if node in inside and node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in roots))
    return GraphModule(gm, graph)
