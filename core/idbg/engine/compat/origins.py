"""Record of which node of an outer graph each node of a `make_fx` trace was traced from.

Backends that call `make_fx` on a graph module lose its nodes' metadata: the module's generated code runs, and no
interpreter. The line of that code which runs is the node's. An `Origin` has the Dynamo nodes; `source_name` is the node
of the graph just before, in which AOTAutograd has split what is one node of Dynamo's.
"""

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType

from torch.fx import GraphModule, Node

from idbg.engine.compat import fx, tracing
from idbg.engine.compat.hooks import Feature, Function, hooked
from idbg.engine.compat.names import Note

_KEY, _FRAME, _NAME = "idbg_origin", "idbg_frame", "idbg_name"  # of a node's metadata
_RETRACED = "retraced nodes"


@dataclass(frozen=True)
class Origin:
    """The Dynamo nodes that a node was traced from, and where: `frame` by its name in the session."""

    frame: str
    nodes: tuple[str, ...]
    stack_trace: str


def origin_of(node: Node) -> Origin | None:
    """The recorded origin of a node; None if there is none."""
    found = node.meta.get(_KEY)
    return found if isinstance(found, Origin) else None


def record_origins(gm: GraphModule) -> None:
    """Record each node of a graph that a backend receives as its own origin."""
    frame = tracing.frame_name()
    traced = any(node.meta.get("from_node") for node in gm.graph.nodes)
    for node in gm.graph.nodes:
        names = tuple(sorted(fx.origins(node))) if traced else (node.name,)
        if node.op not in ("placeholder", "output"):
            node.meta[_KEY] = Origin(frame, names or _of_sequence(node), node.meta.get("stack_trace") or "")


def _of_sequence(node: Node) -> tuple[str, ...]:
    """The Dynamo nodes of the forward's nodes that a node of the backward differentiates."""
    number = node.meta.get("seq_nr", -1)
    same = (other for other in node.graph.nodes if other.meta.get("seq_nr", -2) == number)
    return tuple(sorted({name for other in same for name in fx.origins(other)}))


def origins_traced(note: Note) -> AbstractContextManager[None]:
    """While it lasts, nodes that `make_fx` creates have the origins of the nodes whose code runs."""

    def create_node(call: Function, *args: object, **kwargs: object) -> Node:
        node: Node = call(*args, **kwargs)
        source = running_node(sys._getframe(1))
        if source is not None and (origin := origin_of(source)) is not None:
            node.meta[_KEY] = origin
        return node

    return hooked(Feature(_RETRACED, note), {"PythonKeyTracer.create_node": create_node})


def sources_recorded() -> AbstractContextManager[None]:
    """While it lasts, nodes that are created carry the frame that is compiled, and the node that they came from."""

    def create_node(call: Function, *args: object, **kwargs: object) -> Node:
        node: Node = call(*args, **kwargs)
        node.meta[_FRAME] = tracing.current_frame()
        if (source := running_node(sys._getframe(1))) is not None:
            node.meta[_NAME] = source.name
        return node

    return hooked(_RETRACED, {"PythonKeyTracer.create_node": create_node})


def source_name(node: Node) -> str:
    """The node of the graph before that this one was traced from; its own name where it was not traced again."""
    return str(node.meta.get(_NAME, node.name))


def frame_of(gm: GraphModule) -> str:
    """The compile id of the frame that a graph is of; "" where that was not recorded."""
    return next((str(node.meta[_FRAME]) for node in gm.graph.nodes if _FRAME in node.meta), "")


def running_node(frame: FrameType | None) -> Node | None:
    """The node of the innermost graph module whose generated code has this frame above it."""
    while frame is not None:
        gm = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if isinstance(gm, GraphModule) and frame.f_code.co_filename.startswith("<eval_with_key>"):
            return _node_at(gm, frame.f_lineno)
        frame = frame.f_back
    return None


def _node_at(gm: GraphModule, line: int) -> Node | None:
    places: dict[int, int] = getattr(gm, "_lineno_map", None) or {}
    place = places.get(line - getattr(gm, "_prologue_start", 0))
    nodes = list(gm.graph.nodes)
    return nodes[place] if place is not None and place < len(nodes) else None
