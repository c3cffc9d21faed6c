"""Map the buffers of a wrapper to the nodes whose values they hold, and fit reference values to their shapes."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.compat import comparing, fx
from idbg.engine.instrument.wrapper_lines import Wrapper
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue

Changes = Mapping[str, set[str]]
"""Input or buffer -> the nodes that write to it in place."""


@dataclass(frozen=True)
class NodeBuffer:
    """After the launch, the buffer `name` holds the value of `node`; `changes` are the nodes that write to it in place.
    With `whole`, the name of another buffer that holds the node, it is a part of that buffer.
    """

    name: str
    node: str
    changes: tuple[str, ...] = ()
    whole: str = ""


def changes_of(graph: comparing.InductorGraph) -> dict[str, set[str]]:
    """The nodes that write in place to each input or buffer."""
    nodes = {node.name: node for node in graph.gm.graph.nodes}
    own = {buffer.name: buffer.node for buffer in graph.buffers}
    changes: dict[str, set[str]] = {}
    for buffer in graph.buffers:
        changing = {
            name for name in buffer.origins if name in nodes and comparing.changes_arguments(nodes[name].target)
        }
        for name in buffer.writes:  # where no op in place writes, it is the last step of the node that the buffer holds
            changes.setdefault(name, set()).update(changing or {own.get(name, "")} & nodes.keys())
    return changes


def node_buffers(graph: comparing.InductorGraph, wrapper: Wrapper, changed: Changes) -> dict[int, list[NodeBuffer]]:
    """For each point of the wrapper, the buffers that hold a node's value from there on."""
    nodes: dict[str, Node] = {node.name: node for node in graph.gm.graph.nodes}
    buffers = {buffer.name: buffer for buffer in graph.buffers}
    order = {node: place for place, node in enumerate(nodes)}
    found: dict[int, list[NodeBuffer]] = {}
    for name, points in wrapper.writes.items():
        changes = tuple(sorted(changed.get(name, ()), key=order.__getitem__))
        node = buffers[name].node if name in buffers else (changes or ("",))[-1]
        whole = wrapper.bases.get(name, "")
        if node in nodes:
            if name not in buffers and not fx.returns_written(nodes[node].target):
                node = list(nodes)[graph.inputs.index(name)]
            if name in buffers and changes and node not in changes and len(points) > 1:  # before it is changed
                found.setdefault(points[0], []).append(NodeBuffer(name, node))
            found.setdefault(points[-1], []).append(NodeBuffer(name, node, changes))
        elif whole in buffers and buffers[whole].node in nodes and whole in wrapper.points[points[-1]].names:
            found.setdefault(points[-1], []).append(NodeBuffer(name, buffers[whole].node, whole=whole))
    return found


def fitted(reference: ReferenceValue, value: Tensor, whole: Tensor | None) -> ReferenceValue:
    """The reference value in the buffer's shape; `whole` is the buffer that it is a part of. Raises NotComputable."""
    if not isinstance(reference.own, Tensor):
        raise NotComputable("its node's value is not a tensor")
    exact, own = reference.exact, reference.own
    if whole is not None:
        exact, own = (_part(side, whole, value) for side in (exact, own))
    return ReferenceValue(shaped(exact, value), shaped(own, value))


def shaped(value: Tensor, like: Tensor) -> Tensor:
    """The value in another shape, which may differ only in dims of size 1. Raises NotComputable."""
    if value.shape == like.shape:
        return value
    if [size for size in value.shape if size != 1] != [size for size in like.shape if size != 1]:
        raise NotComputable(f"its buffer has shape {tuple(like.shape)}, its node {tuple(value.shape)}")
    return value.reshape(like.shape)


def _part(values: Tensor, whole: Tensor, part: Tensor) -> Tensor:
    """The part of the values at the position that `part` has in `whole`."""
    if values.shape != whole.shape:
        raise NotComputable(f"its buffer has shape {tuple(whole.shape)}, its node {tuple(values.shape)}")
    laid_out = torch.empty_strided(whole.shape, whole.stride(), dtype=values.dtype, device=values.device)
    return laid_out.copy_(values).as_strided(part.shape, part.stride(), part.storage_offset() - whole.storage_offset())
