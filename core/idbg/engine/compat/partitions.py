"""Observe how backends split a graph by torch's CapabilityBasedPartitioner, as OpenVINO, TensorRT and others do."""

import operator
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.fx import GraphModule, Node

from idbg.engine.compat.hooks import Feature, hooked

if TYPE_CHECKING:
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition


class Split(NamedTuple):
    """How `package` splits a graph: the calls of each partition that it compiles (by the number in its module's name),
    in the order of the graph, and those that eager runs, each with whether the package supports it. Elements of tuples
    are left out.
    """

    package: str
    compiled: dict[int, list[Node]]
    native: list[tuple[Node, bool]]


def observe_splits(feature: Feature, split: Callable[[Split, GraphModule], None]) -> AbstractContextManager[None]:
    """While it lasts, `split` gets each split, and the graph in which each partition is a module "fused_N"."""

    def fuse_partitions(
        call: Callable[..., GraphModule],
        partitioner: "CapabilityBasedPartitioner",
        partitions: "list[Partition]",
        *args: Any,
        **kwargs: Any,
    ) -> GraphModule:
        found = _found(partitioner, partitions)  # fusing changes the graph in place
        fused = call(partitioner, partitions, *args, **kwargs)
        split(found, fused)
        return fused

    return hooked(feature, {"CapabilityBasedPartitioner.fuse_partitions": fuse_partitions})


def _found(partitioner: "CapabilityBasedPartitioner", partitions: "list[Partition]") -> Split:
    place = {node: index for index, node in enumerate(partitioner.graph_module.graph.nodes)}
    parts = {number: sorted(calls_of(each.nodes), key=place.__getitem__) for number, each in enumerate(partitions)}
    compiled = {
        number: parts[number]
        for number in sorted(parts, key=lambda number: min(map(place.__getitem__, parts[number]), default=0))
    }
    taken = {node for nodes in compiled.values() for node in nodes}
    modules = dict(partitioner.graph_module.named_modules())
    native = [
        (node, bool(partitioner.operator_support.is_node_supported(modules, node)))
        for node in calls_of(partitioner.graph_module.graph.nodes)
        if node not in taken
    ]
    package = type(partitioner.operator_support).__module__.partition(".")[0]
    return Split(package, compiled, native)


def calls_of(nodes: Iterable[Node]) -> list[Node]:
    """The calls among these nodes, without elements of tuples."""
    return [node for node in nodes if node.op.startswith("call_") and node.target is not operator.getitem]
