"""Compute the values of a graph's nodes again in eager, as their readers get them."""

from collections.abc import Iterable, Mapping

import torch
from torch.fx import GraphModule, Interpreter
from torch.fx import Node as FxNode

from idbg.engine.capture.run import SavedGraph
from idbg.engine.compat import comparing, fx

_KEPT_BYTES = 512 << 20  # of values that are held for the next candidate


class Recorder:
    """The values of a held graph's nodes, each as it is just before the node that reads it: what is changed in place
    has another there than at its birth. Weights are not copied. `given` are those that are not computed.
    """

    def __init__(self, held: SavedGraph, weights: Iterable[str]) -> None:
        self._held = held
        self._weights = set(weights)
        self._place = {node.name: at for at, node in enumerate(held.gm.graph.nodes)}
        self._known: dict[tuple[str, str], object] = {}
        nodes = held.gm.graph.nodes
        placeholders = [node.name for node in nodes if node.op == "placeholder"]
        self.given = dict(zip(placeholders, map(fx.concrete, held.inputs), strict=False)) | {
            node.name: comparing.attribute(held.gm, str(node.target)) for node in nodes if node.op == "get_attr"
        }

    def values(self, wanted: Mapping[str, str]) -> dict[str, object]:
        """The value of each node of `wanted` as the node that it is given with reads it; of an argument, and of what
        the graph holds, as it was given.

        Raises what the graph raises in eager, KeyError for a node that is not there.
        """
        computed = {name: reader for name, reader in wanted.items() if name not in self.given}
        missing = {name: reader for name, reader in computed.items() if (name, reader) not in self._known}
        if missing:
            self._record(missing)
        return {
            name: self.given[name] if name in self.given else self._known[name, reader]
            for name, reader in wanted.items()
        }

    def _record(self, wanted: Mapping[str, str]) -> None:
        run = _Recording(self._held.gm, wanted, max(self._place[reader] for reader in wanted.values()), self._place)
        held = self._held.inputs
        placeholders = [node.name for node in self._held.gm.graph.nodes if node.op == "placeholder"]
        inputs = [
            value if name in self._weights else _copied(value) for name, value in zip(placeholders, held, strict=True)
        ]
        with torch.no_grad(), torch.random.fork_rng(), fx.transforms_undone():
            torch.manual_seed(0)
            try:
                run.run(*inputs)
            finally:
                run.leave()
        if sum(map(_bytes, self._known.values())) > _KEPT_BYTES:
            self._known.clear()
        self._known |= {(name, reader): run.taken[name] for name, reader in wanted.items()}


class _Recording(Interpreter):
    """Runs the graph as far as the last reader, and takes what is wanted on the way."""

    def __init__(self, gm: GraphModule, wanted: Mapping[str, str], last: int, place: Mapping[str, int]) -> None:
        super().__init__(gm, garbage_collect_values=True)
        self.taken: dict[str, object] = {}
        self._entered: dict[FxNode, torch.autocast] = {}
        self._before: dict[str, list[str]] = {}
        for name, reader in wanted.items():
            self._before.setdefault(reader, []).append(name)
        self._named = {node.name: node for node in gm.graph.nodes}
        self._last, self._place = last, place

    def run_node(self, n: FxNode) -> object:
        for name in self._before.get(n.name, ()):
            self.taken[name] = _copied(self.env[self._named[name]])
        if self._place[n.name] >= self._last or n.op == "output":
            return None
        value = fx.concrete(super().run_node(n))
        if isinstance(value, torch.autocast):
            self._entered[n] = value
        elif fx.leaves_autocast(n):
            self._entered.pop(n.all_input_nodes[0], None)
        return value

    def leave(self) -> None:
        """End what the graph has begun, and would have ended behind the last reader."""
        for mode in reversed(self._entered.values()):
            mode.__exit__(None, None, None)


def _copied(value: object) -> object:
    """A copy with the same strides; what overlaps itself is taken as it is. Raises RuntimeError for what has no memory
    of its own, as in a function that is mapped over a batch.
    """
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested:
        value = value.detach()
        value.data_ptr()
        return value.clone() if torch.ops.aten.is_non_overlapping_and_dense(value) else value
    return value


def _bytes(value: object) -> int:
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0
