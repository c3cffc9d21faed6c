"""Can what a saved record says be? A session's file may come from anybody, and from any accident.

Each value's own bounds stand in its type (`idbg.schema.graphs`); here is what several values must be together.
"""

from idbg.schema import events
from idbg.schema.events import SessionEvent
from idbg.schema.graphs import Graph, Node, TensorMeta

_MOST_ELEMENTS = 1 << 63  # torch counts elements in 64 bits


def impossible(event: SessionEvent) -> str:
    """What in this event cannot be, as the end of a sentence; "" where nothing was found."""
    if not isinstance(event, events.GraphCaptured):
        return ""
    graph = event.graph
    if any(not -_MOST_ELEMENTS < (tensor.numel or 0) < _MOST_ELEMENTS for tensor in _tensors(graph)):
        return f"a tensor of the {graph.id} graph has 2**63 elements or more"
    unlike = next((node for node in graph.nodes if not _agree(node)), None)
    if unlike is not None:
        return f"the node {unlike.name!r} of the {graph.id} graph has not one storage for each of its tensors"
    return ""


def _tensors(graph: Graph) -> set[TensorMeta]:
    return {tensor for node in graph.nodes for tensor in node.tensors}


def _agree(node: Node) -> bool:
    storages, sizes = len(node.storages), len(node.storage_bytes)
    return storages in (0, len(node.tensors)) and sizes in (0, storages)
