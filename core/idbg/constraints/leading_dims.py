"""Find tensors with outer dimensions that the hardware does not have."""

from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.analysis.sizes import spelled_dim
from idbg.constraints.base import BadValue, Finding, TensorRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import Role, TensorMeta


class LeadingDims(TensorRule, frozen=True, tag="leading_dims"):
    """Only the innermost `free` dimensions may be larger than 1."""

    free: int

    def validate(self) -> None:
        if self.free < 0:
            raise BadValue("free", f"free is {self.free}; it must be 0 or more", hint="the number of inner dimensions")

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """Every outer size that is not 1, or may not be."""
        outer = tensor.shape[: max(len(tensor.shape) - self.free, 0)]
        bad = [(place, dim) for place, dim in enumerate(outer) if dim != 1]
        if bad:
            found = ", ".join([f"dim {place} is {spelled_dim(dim)}" for place, dim in bad])
            wanted = f"1 in all but the innermost {self.free} dimensions"
            yield Finding(found, wanted, "loop over it, or merge it into an inner dimension (reshape)")

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """As many inner dimensions as any tensor uses; None where every size is 1."""
        used = [
            len(tensor.shape) - place
            for tensor in self.concerned(signatures)
            for place, dim in enumerate(tensor.shape)
            if dim != 1
        ]
        return replace(self, free=max(self.free, *used)) if used else None
