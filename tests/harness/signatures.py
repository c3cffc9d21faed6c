"""What rules get of a node: made of it as the checker makes it."""

from idbg.constraints import NodeSignature
from idbg.constraints.facts import Signatures
from idbg.schema.graphs import Graph, GraphId, Node


def signature_of(node: Node) -> NodeSignature:
    """The signature of a node that stands alone in its graph."""
    (signature,) = Signatures(Graph(GraphId("0/0", "inference"), (node,), "")).signatures
    return signature
