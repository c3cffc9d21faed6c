"""The record of a node that breaks a rule, with its severity."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from idbg.schema.graphs import Links, NodeId

Severity = Literal["reject", "fallback", "pad", "tile", "slow", "unknown"]

SEVERITIES: tuple[Severity, ...] = ("reject", "fallback", "pad", "tile", "slow", "unknown")


def problem(found: str, wanted: str) -> str:
    """What is wrong, as every output writes it: "dim 0 is 10, wanted a multiple of 16"."""
    return ", ".join(filter(None, (found, f"wanted {wanted}" if wanted else "")))


class Violation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule broken by one node. `found` and `wanted` are short and read as `problem` writes them.

    `adds`: the bytes that the fix adds, as a share of the tensor's; `hint`: what the rule's author advises. In sessions
    of earlier versions `fix` has both in words. `again`: what the node comes from breaks the rule at an earlier stage
    (`marked`), so that it is not counted once more.
    """

    rule: str
    severity: Severity
    node: NodeId
    found: str
    wanted: str
    fix: str = ""
    source: str = ""
    file: str = ""
    line: int = 0
    adds: float | None = None
    hint: str = ""
    again: bool = False

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else ""
        return f"{self.rule}: {self.node.name} [{self.node.graph.stage}] {problem(self.found, self.wanted)}{place}"


def marked(violations: Sequence[Violation], links: Iterable[Links]) -> list[Violation]:
    """The same, each `again` where a node that it comes from breaks the same rule at an earlier stage."""
    broken = {(each.rule, each.node) for each in violations}
    if len({each.node.graph for each in violations}) < 2:
        return list(violations)
    above: dict[NodeId, list[NodeId]] = {}
    for each in links:
        for name, below in each.pairs:
            above.setdefault(NodeId(each.below, below), []).append(NodeId(each.above, name))
    return [replace(each, again=_is_again(each, above, broken)) for each in violations]


def _is_again(
    violation: Violation, above: Mapping[NodeId, Sequence[NodeId]], broken: Collection[tuple[str, NodeId]]
) -> bool:
    waiting, seen = [violation.node], {violation.node}
    while waiting:
        for node in above.get(waiting.pop(), ()):
            if (violation.rule, node) in broken:
                return True
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return False


def count(violations: Iterable[Violation]) -> int:
    """How many there are: what is broken at several stages counts once."""
    return sum(not each.again for each in violations)


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The severest of these severities; None of none."""
    return min(severities, key=SEVERITIES.index, default=None)
