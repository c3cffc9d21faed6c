"""Find tensors with more dimensions than the hardware supports, or fewer."""

from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.constraints.base import BadValue, Constraint, Finding, TensorRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import Role, TensorMeta


class Rank(TensorRule, frozen=True, tag="rank"):
    """Every tensor must have `min` to `max` dimensions."""

    max: int
    min: int = 0

    def validate(self) -> None:
        if self.max < 0 or self.min < 0:
            raise BadValue("max" if self.max < 0 else "min", "a rank is 0 or more", hint="0 is a scalar's")
        if self.min > self.max:
            raise BadValue(
                "min", f"min is {self.min} and max is {self.max}: no tensor has such a rank", hint="swap them"
            )

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """Too many dimensions, or too few."""
        rank = len(tensor.shape)
        if rank > self.max:
            yield Finding(f"rank is {rank}", f"at most {self.max}", "flatten dimensions that are used together")
        elif rank < self.min:
            yield Finding(f"rank is {rank}", f"at least {self.min}", "add dimensions of size 1: unsqueeze")

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The ranks from the smallest to the largest that there is."""
        ranks = [len(tensor.shape) for tensor in self.concerned(signatures)]
        return replace(self, min=min(self.min, *ranks), max=max(self.max, *ranks)) if ranks else None

    def contradicts(self, other: Constraint) -> str:
        """Two ranges of ranks that do not meet."""
        if isinstance(other, Rank) and (self.max < other.min or other.max < self.min):
            return "they allow no rank in common"
        return ""
