"""Find what a training step saves from its forward for its backward, what it recomputes, and the memory of both.

From the forward and the backward graph alone: torch's partitioner cuts them from one graph, and a node keeps its name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from idbg.schema.graphs import Graph, GraphId, Node
from idbg.schema.runs import Run

_NAMES = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Held:
    """A value that waits for the backward. `nbytes` is what its memory takes, None where a size is not known; 0 where
    it is the memory of one named before. `argument`: an input or weight, that is there anyway; `output`: one that the
    program is given anyway.
    """

    node: str
    nbytes: int | None
    argument: bool = False
    output: bool = False


@dataclass(frozen=True)
class Partition:
    """How the joint graph of a frame was cut. Bytes are of what is held between forward and backward and would else be
    free: no argument, and no memory twice. `everything`: were nothing computed again; `unknown`: values whose bytes
    nobody knows, and that are left out of all three.
    """

    frame: str
    kept: tuple[Held, ...]
    recomputed: tuple[str, ...]
    views: tuple[str, ...]
    nbytes: int
    everything: int
    argument_bytes: int
    unknown: int = 0


def partition(run: Run, frame: str) -> Partition | None:
    """Of this frame; None where it has no backward."""
    forward, backward = (run.graphs.get(GraphId(frame, stage)) for stage in ("forward", "backward"))
    if forward is None or backward is None:
        return None
    memory = _Memory(forward)
    handed = [node.name for node in backward.nodes if node.op == "placeholder" and node.name in forward.by_name]
    outputs = _outputs(forward, handed)
    kept = tuple(memory.held(forward.by_name[name], name in outputs) for name in handed)
    again = [node.name for node in backward.nodes if node.op.startswith("call") and node.name in forward.by_name]
    views = tuple(name for name in again if _is_view(backward, backward.by_name[name]))
    memory = _Memory(forward)
    boundary = tuple(memory.held(forward.by_name[name], name in outputs) for name in _boundary(forward, backward))
    return Partition(
        frame=frame,
        kept=kept,
        recomputed=tuple(name for name in again if name not in views),
        views=views,
        nbytes=_bytes(each for each in kept if not each.argument),
        everything=_bytes(each for each in boundary if not each.argument),
        argument_bytes=_bytes(each for each in kept if each.argument),
        unknown=sum(each.nbytes is None for each in {*kept, *boundary}),
    )


class _Memory:
    """Counts each memory once; what arguments stand on is theirs."""

    def __init__(self, graph: Graph) -> None:
        self._theirs = {at for node in graph.nodes if node.op == "placeholder" for at in node.storages}
        self._seen: set[int] = set()

    def held(self, node: Node, output: bool) -> Held:
        argument = node.op == "placeholder" or (bool(node.storages) and self._theirs.issuperset(node.storages))
        if not node.storages:
            sizes = [tensor.nbytes for tensor in node.tensors]
        else:
            sizes = [
                size
                for at, size in zip(node.storages, node.storage_bytes, strict=True)
                if at not in self._seen and (argument or at not in self._theirs)
            ]
        self._seen.update(node.storages)
        known = [size for size in sizes if size is not None]
        return Held(node.name, sum(known) if len(known) == len(sizes) else None, argument, output)


def _bytes(held: Iterable[Held]) -> int:
    return sum(each.nbytes or 0 for each in held)


def _outputs(forward: Graph, handed: list[str]) -> set[str]:
    """What the program is given: the forward's results come first, then as many as it hands to the backward."""
    results = next((node.args for node in reversed(forward.nodes) if node.op == "output"), "")
    names = _NAMES.findall(results)
    return set(names[: max(len(names) - len(handed), 0)])


def _boundary(forward: Graph, backward: Graph) -> list[str]:
    """The forward's nodes that the backward's own nodes read: all that would be kept, were nothing computed again."""
    own = (node for node in backward.nodes if node.op != "placeholder" and node.name not in forward.by_name)
    read = dict.fromkeys(name for node in own for name in node.inputs)
    return [name for name in read if name in forward.by_name]


def _is_view(graph: Graph, node: Node) -> bool:
    """Whether a node computes nothing: its memory is that of what it reads."""
    if node.target == "operator.getitem":
        return True
    sources = {at for name in node.inputs for at in graph.by_name[name].storages if name in graph.by_name}
    return bool(node.storages) and sources.issuperset(node.storages)
