"""Names of the nodes from which the nodes of a graph were traced that a backend traces again.

`origins` has the Dynamo nodes that a node came from; here it is the node of the graph just before, in which AOTAutograd
has told apart what is one node of Dynamo's.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from torch.fx import GraphModule, Node

from idbg.engine.compat import tracing
from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.origins import running_node

_FRAME, _NAME = "idbg_frame", "idbg_name"  # keys of a node's metadata


def origins_recorded() -> AbstractContextManager[None]:
    """While it lasts, nodes that are created carry the frame that is compiled, and the node that they came from."""

    def create_node(call: Callable[..., Node], *args: object, **kwargs: object) -> Node:
        node = call(*args, **kwargs)
        node.meta[_FRAME] = tracing.current_frame()
        if (origin := running_node(sys._getframe(1))) is not None:
            node.meta[_NAME] = origin.name
        return node

    return hooked("retraced nodes", {"PythonKeyTracer.create_node": create_node})


def origin_of(node: Node) -> str:
    """The node of the graph before that this one was traced from; its own name where it was not traced again."""
    return str(node.meta.get(_NAME, node.name))


def frame_of(gm: GraphModule) -> str:
    """The compile id of the frame that a graph is of; "" where that was not recorded."""
    return next((str(node.meta[_FRAME]) for node in gm.graph.nodes if _FRAME in node.meta), "")
