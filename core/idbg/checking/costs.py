"""The cost of padding and of falling back to the host."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from math import prod
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from idbg.analysis.flops import flops
from idbg.analysis.partition import Partitions, best_merge, partition
from idbg.constraints import Findings, Group, NodeSignature, TensorRule
from idbg.format.amounts import counted, percentage
from idbg.schema.graphs import Role, TensorMeta

_CHANGES = 24  # findings that are tried as the best one to allow
_WHERE = re.compile(r"^(?:output|operand) \d+: ")  # starts a finding: what is found there is the same anywhere
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
        """The waste of `count` nodes that are alike."""
        return Waste(self.nbytes * count, self.wasted_bytes * count, self.flops * count, self.wasted_flops * count)

    @property
    def bytes_percent(self) -> float:
        """What padding adds to the bytes, in percent; 0 where there are none."""
        return 100 * self.wasted_bytes / self.nbytes if self.nbytes else 0.0

    @property
    def flops_percent(self) -> float:
        """What padding adds to the FLOPs, in percent; 0 where there are none."""
        return 100 * self.wasted_flops / self.flops if self.flops else 0.0


class RuleChange(NamedTuple):
    """One change to the rules of severity `fallback`: what was `found` is allowed; with no `found`, the rule is left
    out."""

    rule: str
    found: str = ""

    @property
    def label(self) -> str:
        """ "npu: dtype is float32", "without rule npu"."""
        return f"{self.rule}: {self.found}" if self.found else f"without rule {self.rule}"

    def frees(self, group: Group) -> bool:
        """Whether these nodes no longer break the rule."""
        return group.rule.name == self.rule and self.found in ("", _found(group))


class Better(Struct, frozen=True):
    """One change, and what it would leave: partitions, calls on the host, and bytes that cross between them."""

    change: RuleChange
    count: int
    host: int
    bytes: int

    @property
    def label(self) -> str:
        """What the change is, without what it would leave."""
        return self.change.label

    @property
    def words(self) -> str:
        """ "allowing 'dtype is float32' (npu) leaves 1 partition", "without rule npu: nothing falls back"."""
        rule, found = self.change
        left = counted(self.count, "partition") if self.host else "nothing falls back"
        return (
            f"allowing '{found}' ({rule}){' leaves' if self.host else ':'} {left}" if found else f"{self.label}: {left}"
        )


class Padded(NamedTuple):
    """One tensor that is padded, and the shape that it gets."""

    tensor: TensorMeta
    shape: tuple[int, ...]


def growth(percent: float) -> str:
    """What padding adds: "+12 %"; from 1,000 % on how many times as much it makes: "85x"."""
    return f"+{percentage(percent)}" if percent < 1000 else f"{1 + percent / 100:,.0f}x"


def padded(findings: Findings, index: int) -> list[Padded]:
    """The padded results of one node, by its index in the graph."""
    signature = findings.signature_at(index)
    if signature is None:
        return []
    rules = _of_results(_pads(findings, signature))
    shapes = [_padded_shape(tensor, signature.role, rules) for tensor in signature.tensors]
    return [Padded(tensor, shape) for tensor, shape in zip(signature.tensors, shapes, strict=True) if shape is not None]


def waste_of(findings: Findings, index: int) -> Waste:
    """What padding adds to one node: to its results' bytes, and to its FLOPs, its operands padded too."""
    signature = findings.signature_at(index)
    return _waste(signature, _pads(findings, signature)) if signature is not None else Waste()


def waste(findings: Findings) -> Waste:
    """What padding adds to all nodes together; memory that several share (views) counts once, where that is known."""
    total = Waste()
    for signature, made, count in findings.signatures():
        rules = _pads(findings, signature)
        one = _waste(signature, rules)
        total += Waste(flops=one.flops, wasted_flops=one.wasted_flops).times(count)
        total += Waste(nbytes=one.nbytes, wasted_bytes=one.wasted_bytes).times(made)
    return total


def partitions(findings: Findings) -> Partitions:
    """The graph's partitions, with the nodes that break a rule of severity `fallback` on the host."""
    return partition(findings.graph, _names(findings, findings.broken_nodes("fallback")))


def best_changes(findings: Sequence[Findings], now: Sequence[Partitions]) -> list[Better]:
    """Which one change to the rules of severity `fallback` would leave the fewest partitions, then bytes, in all
    these graphs.

    First the best finding to allow, then the best rule to leave out, where that leaves fewer partitions still; nothing
    if no change leaves less. Where all is on the host, the best is what takes the most calls from there.
    """
    allowed, left_out = (_best(findings, now, whole=whole) for whole in (False, True))
    if allowed and left_out and left_out.count >= allowed.count:
        left_out = None
    return [one for one in (allowed, left_out) if one]


def _best(findings: Sequence[Findings], now: Sequence[Partitions], *, whole: bool) -> Better | None:
    """Tried are those that are the best for some graph."""
    best = [_best_of(one, parts, whole=whole) for one, parts in zip(findings, now, strict=True)]
    tried = [_better(change, [_with(one, change) for one in findings]) for change in dict.fromkeys(best) if change]
    count, nbytes = sum(parts.count for parts in now), sum(parts.bytes for parts in now)
    if not count:
        return min(tried, key=lambda one: one.host, default=None)
    less = [one for one in tried if (one.count, one.bytes) < (count, nbytes)]
    return min(less, key=lambda one: (one.count, one.bytes), default=None)


def _best_of(findings: Findings, now: Partitions, *, whole: bool) -> RuleChange | None:
    """Tried are the changes of the most nodes, for each takes a walk through the graph."""
    broken: dict[RuleChange, set[str]] = {}
    for group in findings.groups:
        if group.rule.severity == "fallback":
            change = RuleChange(group.rule.name, "" if whole else _found(group))
            broken.setdefault(change, set()).update(_names(findings, group.nodes))
    if not now.count:
        held = Counter(name for names in broken.values() for name in names)
        freed = {change: sum(held[name] == 1 for name in names) for change, names in broken.items()}
        return max((change for change in freed if freed[change]), key=lambda change: freed[change], default=None)
    most = sorted(broken, key=lambda change: len(broken[change]), reverse=True)[:_CHANGES]
    labels = {change.label: change for change in broken}
    held_by = {change.label: names for change, names in broken.items()}
    merge = best_merge(findings.graph, held_by, now, [change.label for change in most])
    return labels[merge.label] if merge else None


def _with(findings: Findings, change: RuleChange) -> Partitions:
    """The partitions of a graph, were the change made."""
    held = {
        index
        for group in findings.groups
        if group.rule.severity == "fallback" and not change.frees(group)
        for index in group.nodes
    }
    return partition(findings.graph, _names(findings, held))


def _better(change: RuleChange, left: Sequence[Partitions]) -> Better:
    count, host = sum(parts.count for parts in left), sum(len(parts.host) for parts in left)
    return Better(change, count, host, sum(parts.bytes for parts in left))


def _found(group: Group) -> str:
    """What was found, without the number of the output or operand that it is about."""
    return _WHERE.sub("", group.finding.found, count=1)


def _names(findings: Findings, indices: Collection[int]) -> list[str]:
    nodes = findings.graph.nodes
    return [nodes[index].name for index in indices if nodes[index].op.startswith("call")]


def _pads(findings: Findings, signature: NodeSignature) -> list[TensorRule]:
    """The rules of severity `pad` that concern such nodes."""
    return [
        rule
        for rule in findings.rules
        if isinstance(rule, TensorRule) and rule.severity == "pad" and rule.concerns(signature)
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


def _waste(signature: NodeSignature, rules: Sequence[TensorRule]) -> Waste:
    of_copies = [rule for rule in rules if rule.tensors == "operands" or (rule.tensors == "all" and rule.ops)]
    results = [(tensor, _padded_shape(tensor, signature.role, _of_results(rules))) for tensor in signature.tensors]
    operands = [(one.tensor, _padded_shape(one.tensor, one.role, rules)) for one in signature.operands]
    copies = [(one.tensor, _padded_shape(one.tensor, one.role, of_copies)) for one in signature.operands]
    nbytes = sum(tensor.nbytes or 0 for tensor, _ in results)
    wasted = sum(prod(shape) * tensor.itemsize - (tensor.nbytes or 0) for tensor, shape in (*results, *copies) if shape)
    count = (
        flops(signature.target, [tensor for tensor, _ in operands], signature.tensors, signature.args)
        if signature.target
        else 0
    )
    if not count:
        return Waste(nbytes, wasted)
    # what multiplies padded operands gives a padded result, whichever of them the rules are about
    computed = [(tensor, _padded_shape(tensor, signature.role, rules)) for tensor in signature.tensors]
    after = flops(signature.target, list(map(_as_padded, operands)), list(map(_as_padded, computed)), signature.args)
    return Waste(nbytes, wasted, count, (after or count) - count)


def _of_results(rules: Sequence[TensorRule]) -> list[TensorRule]:
    return [rule for rule in rules if rule.tensors != "operands"]


def _as_padded(pair: tuple[TensorMeta, tuple[int, ...] | None]) -> TensorMeta:
    tensor, shape = pair
    return tensor if shape is None else TensorMeta(tensor.dtype, shape, (), tensor.device)
