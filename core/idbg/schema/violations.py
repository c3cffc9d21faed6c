"""The record of a node that breaks a rule, with its severity."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from idbg.schema.graphs import NodeId

Severity = Literal["reject", "fallback", "pad", "tile", "slow", "unknown"]

SEVERITIES: tuple[Severity, ...] = ("reject", "fallback", "pad", "tile", "slow", "unknown")


def problem(found: str, wanted: str) -> str:
    """What is wrong, as every output writes it: "dim 0 is 10, wanted a multiple of 16"."""
    return ", ".join(filter(None, (found, f"wanted {wanted}" if wanted else "")))


class Violation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule broken by one node. `found` and `wanted` are short and read as `problem` writes them.

    `adds`: the bytes that the fix adds, as a share of the tensor's; `hint`: what the rule's author advises. In sessions
    of earlier versions `fix` has both in words.
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

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else ""
        return f"{self.rule}: {self.node.name} [{self.node.graph.stage}] {problem(self.found, self.wanted)}{place}"


def worst(severities: Iterable[Severity]) -> Severity | None:
    """The severest of these severities; None of none."""
    return min(severities, key=SEVERITIES.index, default=None)
