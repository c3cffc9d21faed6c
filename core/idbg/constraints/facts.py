"""What rules see: of a node its signature, which all nodes that are alike share; of a graph its facts.

Most nodes of a big graph are alike: the same op on the same tensors. The index keeps each distinct signature once,
so that a rule is evaluated once for thousands of nodes.
"""

from functools import cached_property

import msgspec

from idbg.analysis import ops
from idbg.analysis.liveness import MemoryProfile, memory_profile
from idbg.analysis.sizes import stored_bytes
from idbg.schema.graphs import Graph, Node, Opcode, Role, TensorMeta


class Operand(msgspec.Struct, frozen=True, gc=False):
    """One tensor that a node reads, and the role of the node that makes it."""

    tensor: TensorMeta
    role: Role = "intermediate"


class NodeSignature(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node as rules see it: what it shares with every node that is the same to them.

    `op`, `role`, `tensors`, `unknown` are the node's; `target` is that of calls only, `module_class` of call_module
    only, and `args` holds what `ops.flags` reads. `operands` are the tensors of the node's inputs, in the order of its
    op's parameters and each as often as it is an argument in products, convolutions and attention (`ops.operands`);
    otherwise in the order of the arguments, each input once: mul(x, x) has one.
    """

    op: Opcode = "call_function"
    target: str = ""
    args: str = ""
    role: Role = "intermediate"
    tensors: tuple[TensorMeta, ...] = ()
    operands: tuple[Operand, ...] = ()
    module_class: str = ""
    unknown: bool = False


class Signatures:
    """One graph's distinct signatures. `of_node` has the number of a node's signature by its index in the graph, -1 for
    an output node."""

    def __init__(self, graph: Graph) -> None:
        self.signatures: list[NodeSignature] = []
        self.nodes_of: list[list[int]] = []
        self.of_node: list[int] = []
        self._graph = graph
        self._index(graph)

    @cached_property
    def made(self) -> list[int]:
        """For each signature, how many of its nodes make memory of their own: views of one tensor are counted once."""
        counts = [0] * len(self.signatures)
        seen: set[int] = set()
        for node, number in zip(self._graph.nodes, self.of_node, strict=True):
            if number >= 0 and not (node.storages and seen.issuperset(node.storages)):
                seen.update(node.storages)
                counts[number] += 1
        return counts

    def _index(self, graph: Graph) -> None:
        values: dict[object, int] = {}  # (tensors, role) -> a number, which hashes faster than they do
        samples: list[Node] = []  # a node for each value
        made: dict[str, int] = {}  # node -> its value
        known: dict[object, int] = {}
        signatures, nodes_of, of_node = self.signatures, self.nodes_of, self.of_node
        for index, node in enumerate(graph.nodes):
            if node.op == "output":
                of_node.append(-1)
                continue
            value = values.setdefault((node.tensors, node.role), len(samples))
            if value == len(samples):
                samples.append(node)
            made[node.name] = value
            reads_args = ops.reads_args(node.target)
            inputs = ops.operands(node) if reads_args else node.inputs
            operands = tuple(map(made.get, inputs))  # None for a node that the graph does not hold
            key = (value, operands, _call(node, reads_args), node.unknown)
            number = known.setdefault(key, len(signatures))
            if number == len(signatures):
                signatures.append(_signature(node, [samples[operand] for operand in operands if operand is not None]))
                nodes_of.append([])
            nodes_of[number].append(index)
            of_node.append(number)


def _call(node: Node, reads_args: bool) -> object:
    """What rules see of the operation itself."""
    if node.op == "call_function" or node.op == "call_method":
        return (node.op, node.target, ops.flags(node)) if reads_args else (node.op, node.target)
    if node.op == "call_module":
        return node.op, node.target, node.module_class
    return node.op


def _signature(node: Node, operands: list[Node]) -> NodeSignature:
    called = node.op not in ("placeholder", "get_attr")
    return NodeSignature(
        op=node.op,
        target=node.target if called else "",
        args=ops.flags(node) if called else "",
        role=node.role,
        tensors=node.tensors,
        operands=tuple(Operand(tensor, operand.role) for operand in operands for tensor in operand.tensors),
        module_class=node.module_class if node.op == "call_module" else "",
        unknown=node.unknown,
    )


class GraphFacts:
    """One graph, with what is costly to know of it: found when a rule first asks, and kept."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._profiles: dict[bool, MemoryProfile] = {}

    def profile(self, *, weights: bool) -> MemoryProfile:
        """What is alive when, with the weights counted or not."""
        if weights not in self._profiles:
            self._profiles[weights] = memory_profile(self.graph, weights=weights)
        return self._profiles[weights]

    @cached_property
    def position(self) -> dict[str, int]:
        """Node name -> index in the graph."""
        return {node.name: index for index, node in enumerate(self.graph.nodes)}

    @cached_property
    def weights(self) -> dict[int, int]:
        """Index of each weight and buffer that the graph is given -> bytes. Branches of a torch.cond have none more."""
        return {
            index: sum(stored_bytes(tensor) or 0 for tensor in node.tensors)
            for index, node in enumerate(self.graph.nodes)
            if node.role in ("weight", "buffer") and node.op in ("placeholder", "get_attr") and "." not in node.name
        }
