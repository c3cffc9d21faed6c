"""Link the nodes of one stage with the nodes of the next."""

from collections import defaultdict
from collections.abc import Iterator

from torch.fx import GraphModule
from torch.fx import Node as FxNode

from idbg.engine.compat import fx
from idbg.schema.graphs import Graph, Links, Node

Pairs = tuple[tuple[str, str], ...]


def same_names(above: Graph, below: Graph) -> Links:
    """Link nodes of the same name, as between the joint graph and its forward and backward."""
    pairs = [(node.name, node.name) for node in below.nodes if node.name in above.by_name and node.op != "output"]
    return Links(above.id, below.id, tuple(pairs))


def through_passes(above: Graph, below: Graph) -> Links:
    """Link nodes of the same name, and replaced nodes with those that replace them by the program's line of both."""
    gone: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for node in above.nodes:
        if node.name not in below.by_name and node.line:
            gone[node.file, node.line].append(node.name)
    replaced = [
        (name, node.name)
        for node in below.nodes
        if node.name not in above.by_name and node.op != "placeholder"
        for name in gone.get((node.file, node.line), ())
    ]
    return Links(above.id, below.id, (*same_names(above, below).pairs, *replaced))


def by_line(above: Graph, below: Graph) -> Links:
    """Link nodes of the same line of the program, for a backend of which only printed graphs are known."""
    lines: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for node in above.nodes:
        if node.line:
            lines[node.file, node.line].append(node.name)
    pairs = [(name, node.name) for node in below.nodes for name in lines.get((node.file, node.line), ())]
    return Links(above.id, below.id, (*arguments(above, below), *pairs))


class Trail:
    """Find the Dynamo nodes from which ATen nodes were traced, for the graphs of one frame.

    A forward node has torch's `from_node`. A backward node often has none: it shares a sequence number with the
    forward nodes that it differentiates, and those of the same line of the program are its origin.
    """

    def __init__(self, dynamo: Graph) -> None:
        self.dynamo = dynamo
        self.of_sequence: defaultdict[int, set[str]] = defaultdict(set)

    def pairs(self, gm: GraphModule, graph: Graph) -> Pairs:
        """(Dynamo name, ATen name) for each node of an ATen graph; call it for the forward before the backward."""
        of_arguments = [*arguments(self.dynamo, graph)] if graph.id.stage != "backward" else []
        return (*of_arguments, *self._pairs(gm, graph, "", ""))

    def _pairs(self, gm: GraphModule, graph: Graph, above: str, below: str) -> Iterator[tuple[str, str]]:
        """The pairs of one graph module. Inside of another node, such as torch.cond, names have its prefix: `above` in
        Dynamo's graph, `below` in this one.
        """
        for node in gm.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            sequence = node.meta.get("seq_nr")
            origins = {above + name for name in fx.origins(node)} & self.dynamo.by_name.keys()
            if origins and sequence is not None:
                self.of_sequence[sequence] |= origins
            elif sequence is not None:
                origins = set(self._same_line(self.of_sequence[sequence], above, graph.by_name[below + node.name]))
            yield from ((origin, below + node.name) for origin in sorted(origins))
            holders = [source for source in node.all_input_nodes if fx.inner_graph(gm, source) is not None]
            for origin in sorted(origins) if holders else ():
                yield from self._held_pairs(gm, graph, origin, holders, below)

    def _held_pairs(
        self, gm: GraphModule, graph: Graph, origin: str, holders: list[FxNode], below: str
    ) -> Iterator[tuple[str, str]]:
        """A higher-order op gets its graphs in the same order on both stages."""
        known = {name.rpartition(".")[0] for name in self.dynamo.by_name}
        above = [name for name in self.dynamo.by_name[origin].inputs if name in known]
        if len(above) != len(holders):
            return
        for holder, name in zip(holders, above, strict=True):
            if (inner := fx.inner_graph(gm, holder)) is not None:
                yield from self._pairs(inner, graph, f"{name}.", f"{below}{holder.name}.")

    def _same_line(self, names: set[str], above: str, node: Node) -> Iterator[str]:
        """A branch has its own sequence numbers: only nodes of the same graph match."""
        for name in names:
            if not name.startswith(above) or "." in name.removeprefix(above):
                continue
            if (self.dynamo.by_name[name].file, self.dynamo.by_name[name].line) == (node.file, node.line):
                yield name


def arguments(above: Graph, below: Graph) -> Pairs:
    """AOTAutograd keeps the order of the arguments. Attributes of the graph below, such as AOTInductor's weights, keep
    their names; sizes above are then no arguments below.
    """
    taken = {node.name for node in above.nodes if node.op == "placeholder"}
    held = {node.target: node.name for node in below.nodes if node.op == "get_attr" and node.target in taken}
    names = [
        [node.name for node in graph.nodes if node.op == "placeholder" and node.role != "tangent"]
        for graph in (above, below)
    ]
    if held:
        names[0] = [name for name in names[0] if name not in held and above.by_name[name].tensors]
    given = tuple(zip(names[0], names[1], strict=True)) if len(names[0]) == len(names[1]) else ()
    return (*held.items(), *given)
