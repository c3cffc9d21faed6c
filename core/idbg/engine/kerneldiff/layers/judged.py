"""Judge values of a graph's nodes, as another compiler computes them, against float64 and the program's own dtypes."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_buffer
from idbg.engine.kerneldiff.stages.chain import NotComparable
from idbg.engine.kerneldiff.stages.evaluate import computed
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K, Size
from idbg.schema.remarks import Remark

HELD = 256 << 20  # bytes of values that are in memory at once, of either side


class NodeJudge:
    """Judges values of the nodes of one graph, called with these arguments. Raises NotComparable for a random graph."""

    def __init__(self, gm: GraphModule, arguments: Sequence[object], k: float = KERNEL_K) -> None:
        self.gm, self.arguments, self.k = gm, arguments, k
        self.nodes: dict[str, Node] = {node.name: node for node in gm.graph.nodes}
        if random := next((node for node in gm.graph.nodes if comparing.is_random(node)), None):
            raise NotComparable(Remark("random part", random.name))

    def verdicts(self, values: Mapping[str, Tensor]) -> dict[str, BufferVerdict]:
        """The verdict of each value that corresponds to its node in shape and kind of dtype, in the graph's order. What
        is computed from a wrong value may be as wrong.
        """
        if not values:
            return {}
        references = self._all if self._all is not None else self._references(values)
        found: dict[str, BufferVerdict] = {}
        for name in self.nodes:
            if name not in values or (reference := references.get(name)) is None:
                continue
            if (value := _comparable(values[name], reference.own)) is not None:
                inputs = [found[source].error for source in self._sources(name, found)]
                found[name] = judge_buffer(value, reference, _finite(inputs), k=self.k, steps=True)
        return found

    def is_moved(self, name: str, value: Tensor) -> bool:
        """Whether it has a node's elements in another order, as a compiler stores it that moves a transpose."""
        reference = (self._all or self._references({name: value})).get(name)
        if reference is None or reference.own.dtype.is_complex or value.numel() != reference.own.numel():
            return False
        wide, own, found = (each.flatten().sort().values for each in (reference.exact, reference.own, value))
        return judge_buffer(found.to(own.dtype), ReferenceValue(wide, own), [], k=self.k, steps=True).excess <= 1

    def size(self, name: str) -> int:
        """The bytes of a node's value, where they are known."""
        value = self.nodes[name].meta.get("val")
        if not isinstance(value, Tensor):
            return 0
        sizes = [each if isinstance(each, int) else 1 for each in value.shape]
        count = value.element_size()
        for each in sizes:
            count *= each
        return count

    def input_error(self, name: str, verdicts: Mapping[str, BufferVerdict]) -> float:
        """The worst error of what a node is computed from."""
        return max((verdicts[source].error.rmse for source in self._sources(name, verdicts)), default=0.0)

    def _sources(self, name: str, known: Mapping[str, object]) -> Iterator[str]:
        """The nearest nodes upstream whose values are known."""
        seen: set[Node] = set()
        waiting = list(self.nodes[name].all_input_nodes)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.name in known:
                yield node.name
            else:
                waiting += node.all_input_nodes

    @cached_property
    def _all(self) -> dict[str, ReferenceValue] | None:
        """The references of all nodes; None if they are too large to hold."""
        return self._references(self.nodes) if 3 * sum(map(self.size, self.nodes)) <= HELD else None

    def _references(self, names: Mapping[str, object]) -> dict[str, ReferenceValue]:
        sides: list[dict[str, Tensor]] = []
        for exact in (True, False):
            held: dict[str, Tensor] = {}

            def keep(node: Node, value: object, held: dict[str, Tensor] = held) -> None:
                if isinstance(value, Tensor) and node.name in names:
                    held[node.name] = value.detach().clone()  # an op may write to it later

            computed(self.gm, self.arguments, exact=exact, on_value=keep)
            sides.append(held)
        wide, own = sides
        return {name: ReferenceValue(wide[name], own[name]) for name in wide if name in own}


def _comparable(value: Tensor, own: Tensor) -> Tensor | None:
    if value.shape != own.shape:
        return None
    kinds = [(each.dtype.is_floating_point, each.dtype.is_complex) for each in (value, own)]
    return value.to(own.dtype) if kinds[0] == kinds[1] else None


def _finite(sizes: Sequence[Size]) -> list[Size]:
    """An input that is not finite excuses nothing."""
    return [size for size in sizes if size.rmse < float("inf")]
