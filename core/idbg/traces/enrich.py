"""Add to the nodes of a printed graph what the graphs before it tell: roles, modules, memory and sizes."""

from collections.abc import Iterable

import msgspec

from idbg.schema.graphs import Graph, Node, Opcode, Sym
from idbg.traces import links


def with_weights(graph: Graph) -> Graph:
    """Mark nodes that are computed from weights and buffers alone as weights: they are constant."""
    weights = {node.name for node in graph.nodes if node.role in ("weight", "buffer")}

    def with_role(node: Node) -> Node:
        if not node.op.startswith("call") or not node.inputs or not weights.issuperset(node.inputs):
            return node
        weights.add(node.name)
        return msgspec.structs.replace(node, role="weight")

    return Graph(graph.id, tuple(map(with_role, graph.nodes)), graph.code)


def symbols_of(graphs: Iterable[Graph]) -> dict[str, Sym]:
    """Every symbolic size in these graphs by its expression, to give printed graphs their hints."""
    return {
        dim.expr: dim
        for graph in graphs
        for node in graph.nodes
        for tensor in node.tensors
        for dim in (*tensor.shape, *tensor.stride)
        if isinstance(dim, Sym)
    }


def with_arguments(graph: Graph, dynamo: Graph, forward: Graph | None) -> Graph:
    """Copy the roles and modules of Dynamo's arguments to those of an ATen graph."""
    if graph.id.stage == "backward":
        known = {node.name: node for node in forward.nodes} if forward else {}
    else:
        known = {below: dynamo.by_name[above] for above, below in links.arguments(dynamo, graph)}

    def with_role(node: Node) -> Node:
        source = known.get(node.name)
        is_held = node.op == "get_attr" and source is not None
        if (node.op != "placeholder" and not is_held) or node.role == "tangent":
            return node
        if source is None or (source.op != "placeholder" and source.role not in ("weight", "buffer")):
            return msgspec.structs.replace(node, role="saved" if graph.id.stage == "backward" else node.role)
        return msgspec.structs.replace(node, role=source.role, module=source.module, module_class=source.module_class)

    return with_weights(Graph(graph.id, tuple(with_role(node) for node in graph.nodes), graph.code))


def with_modules(graph: Graph, donors: Iterable[Graph]) -> Graph:
    """A printed graph has no modules, roles and memory: copy them, and the tensors of tuples, from nodes of the same
    name and target; or the module from other nodes of the same line of the program.
    """
    donors = list(donors)
    known = _known(donor for donor in donors if donor.id.stage != "dynamo")
    modules: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for donor in donors:
        for node in donor.nodes:
            modules.setdefault((node.file, node.line), set()).add((node.module, node.module_class))
    unchanged: set[str] = set()  # names of nodes whose memory, and that of their inputs, is the donor's

    def enriched(node: Node) -> Node:
        donor = known.get((node.name, node.op))
        if donor is None:
            at_line = modules.get((node.file, node.line), set()) if node.line else set()
            if len(at_line) != 1:
                return node
            module, module_class = next(iter(at_line))
            return msgspec.structs.replace(node, module=module, module_class=module_class)
        node = msgspec.structs.replace(node, module=donor.module, module_class=donor.module_class, role=donor.role)
        if donor.target != node.target:
            return node
        if len(donor.tensors) > len(node.tensors):
            node = msgspec.structs.replace(node, tensors=donor.tensors)
        if (
            donor.inputs == node.inputs
            and unchanged.issuperset(node.inputs)
            and len(donor.tensors) == len(node.tensors)
        ):
            unchanged.add(node.name)
            node = msgspec.structs.replace(node, storages=donor.storages, storage_bytes=donor.storage_bytes)
        return msgspec.structs.replace(node, unknown=node.unknown and donor.unknown)

    return Graph(graph.id, tuple(enriched(node) for node in graph.nodes), graph.code)


def _known(donors: Iterable[Graph]) -> dict[tuple[str, Opcode], Node]:
    """These graphs' nodes by name and opcode. Memory is numbered over all graphs: what one graph passes to the next has
    one number.
    """
    known: dict[tuple[str, Opcode], Node] = {}
    number_of: dict[str, tuple[int, ...]] = {}
    count = 0
    for donor in donors:
        numbers: dict[int, int] = {}
        for node in donor.nodes:
            for old, new in zip(node.storages, number_of.get(node.name, ()), strict=False):
                numbers.setdefault(old, new)
            for old in node.storages:
                if old not in numbers:
                    numbers[old], count = count, count + 1
            storages = tuple(numbers[old] for old in node.storages)
            number_of.setdefault(node.name, storages)
            known.setdefault((node.name, node.op), msgspec.structs.replace(node, storages=storages))
    return known
