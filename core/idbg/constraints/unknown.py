"""Find nodes that no rule can check, because torch kept no value for them."""

from collections.abc import Iterator

from idbg.constraints.base import Constraint, Finding
from idbg.constraints.facts import NodeSignature
from idbg.schema.violations import Severity


class Unknown(Constraint, frozen=True, tag="unknown"):
    """Every node's tensors must be known. An accelerator with rules has this one; written, it can say the severity."""

    severity: Severity = "unknown"

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A node of which torch kept no tensor metadata."""
        if signature.unknown:
            fix = 'check it by hand, or set severity = "reject" for the rule of kind "unknown"'
            yield Finding("torch kept no tensor metadata", "a node whose tensors are known", fix)
