"""What do padding and falling back to the host cost?"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idbg.analysis.flops import flops
from idbg.analysis.partition import Merge, Partitions, best_merge, partition
from idbg.constraints import Findings, Look, TensorRule
from idbg.records import Role, TensorMeta

_CHANGES = 24  # findings that are tried as the best one to allow
_ROUNDS = 32  # multiples that pad one another up (4 and 6: 3, 4, 6, 8, 12) come to rest before


class Waste(Struct, frozen=True):
    """Bytes and FLOPs as the program has them, and those that padding adds. FLOPs are those that `analysis.flops`
    counts."""

    nbytes: int = 0
    wasted_bytes: int = 0
    flops: int = 0
    wasted_flops: int = 0

    def __add__(self, other: "Waste") -> "Waste":
        return Waste(
            self.nbytes + other.nbytes,
            self.wasted_bytes + other.wasted_bytes,
            self.flops + other.flops,
            self.wasted_flops + other.wasted_flops,
        )

    def times(self, count: int) -> "Waste":
        return Waste(self.nbytes * count, self.wasted_bytes * count, self.flops * count, self.wasted_flops * count)

    @property
    def bytes_percent(self) -> float:
        """What padding adds to the bytes, in percent; 0 where there are none."""
        return 100 * self.wasted_bytes / self.nbytes if self.nbytes else 0.0

    @property
    def flops_percent(self) -> float:
        """What padding adds to the FLOPs, in percent; 0 where there are none."""
        return 100 * self.wasted_flops / self.flops if self.flops else 0.0


class Padded(NamedTuple):
    """One tensor that is padded, and the shape that it gets."""

    tensor: TensorMeta
    shape: tuple[int, ...]


def padded(findings: Findings, index: int) -> list[Padded]:
    """The padded results of one node, by its index in the graph."""
    look = findings.look_at(index)
    if look is None:
        return []
    rules = _of_results(_pads(findings, look))
    shapes = [_padded_shape(tensor, look.role, rules) for tensor in look.tensors]
    return [Padded(tensor, shape) for tensor, shape in zip(look.tensors, shapes, strict=True) if shape is not None]


def waste_of(findings: Findings, index: int) -> Waste:
    """What padding adds to one node: to its results' bytes, and to its FLOPs, its operands padded too."""
    look = findings.look_at(index)
    return _waste(look, _pads(findings, look)) if look is not None else Waste()


def waste(findings: Findings) -> Waste:
    """The same over all nodes. Memory that several nodes have together (views) is counted once, where that is known."""
    total = Waste()
    for look, made, count in findings.looks():
        rules = _pads(findings, look)
        one = _waste(look, rules)
        total += Waste(flops=one.flops, wasted_flops=one.wasted_flops).times(count)
        total += Waste(nbytes=one.nbytes, wasted_bytes=one.wasted_bytes).times(made)
    return total


def partitions(findings: Findings) -> Partitions:
    """The graph's partitions, with the nodes that break a rule of severity `fallback` on the host."""
    return partition(findings.graph, _names(findings, findings.broken_nodes("fallback")))


def best_change(findings: Findings, now: Partitions | None = None) -> Merge | None:
    """Which one finding of a rule of severity `fallback`, were it allowed, would leave the fewest partitions.

    Asked are those of the most nodes, for each takes a walk through the graph.
    """
    nodes = findings.graph.nodes
    broken: dict[str, set[str]] = {}
    for group in findings.groups:
        if group.rule.severity == "fallback":
            label = f"{group.rule.name}: {group.finding.found}"
            broken.setdefault(label, set()).update(nodes[index].name for index in group.nodes)
    asked = sorted(broken, key=lambda label: len(broken[label]), reverse=True)[:_CHANGES]
    return best_merge(findings.graph, broken, now, asked)


def _names(findings: Findings, indices: Sequence[int]) -> list[str]:
    nodes = findings.graph.nodes
    return [nodes[index].name for index in indices if nodes[index].op.startswith("call")]


def _pads(findings: Findings, look: Look) -> list[TensorRule]:
    """The rules of severity `pad` that concern such nodes."""
    return [
        rule
        for rule in findings.rules
        if isinstance(rule, TensorRule) and rule.severity == "pad" and rule.concerns(look)
    ]


def _padded_shape(tensor: TensorMeta, role: Role, rules: Sequence[TensorRule]) -> tuple[int, ...] | None:
    """The smallest shape that all of the rules pass; None if that is the shape as it is, or one is not known."""
    rules = [rule for rule in rules if rule.takes(role)]
    padded, before = tensor, None
    for _ in range(_ROUNDS):
        if padded.shape == before:
            break
        before = padded.shape
        for rule in rules:
            shape = rule.padded(padded, role)
            if shape is None:
                return None
            padded = replace(padded, shape=shape)
    return None if padded.numel == tensor.numel else tuple(size for size in padded.shape if isinstance(size, int))


def _waste(look: Look, rules: Sequence[TensorRule]) -> Waste:
    of_copies = [rule for rule in rules if rule.tensors == "operands" or (rule.tensors == "all" and rule.ops)]
    results = [(tensor, _padded_shape(tensor, look.role, _of_results(rules))) for tensor in look.tensors]
    operands = [(one.tensor, _padded_shape(one.tensor, one.role, rules)) for one in look.operands]
    copies = [(one.tensor, _padded_shape(one.tensor, one.role, of_copies)) for one in look.operands]
    nbytes = sum(tensor.nbytes or 0 for tensor, _ in results)
    wasted = sum(prod(shape) * tensor.itemsize - (tensor.nbytes or 0) for tensor, shape in (*results, *copies) if shape)
    count = flops(look.target, [tensor for tensor, _ in operands], look.tensors, look.args) if look.target else 0
    if not count:
        return Waste(nbytes, wasted)
    # what multiplies padded operands gives a padded result, whichever of them the rules are about
    computed = [(tensor, _padded_shape(tensor, look.role, rules)) for tensor in look.tensors]
    after = flops(look.target, list(map(_as_padded, operands)), list(map(_as_padded, computed)), look.args)
    return Waste(nbytes, wasted, count, (after or count) - count)


def _of_results(rules: Sequence[TensorRule]) -> list[TensorRule]:
    return [rule for rule in rules if rule.tensors != "operands"]


def _as_padded(pair: tuple[TensorMeta, tuple[int, ...] | None]) -> TensorMeta:
    tensor, shape = pair
    return tensor if shape is None else TensorMeta(tensor.dtype, shape, (), tensor.device)
