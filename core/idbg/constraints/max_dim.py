"""Find dimensions that are too large for the hardware, or too small."""

from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.analysis.sizes import spelled_dim
from idbg.constraints.alignment import Alignment
from idbg.constraints.base import BadValue, Constraint, Finding
from idbg.constraints.dims import DimsRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import Dim, Role, Sym, TensorMeta, hint_of


class MaxDim(DimsRule, frozen=True, tag="max_dim"):
    """Sizes of `dims` must be `min` to `max`; a tensor without elements is no tensor to the hardware.

    A symbolic size is checked at its hint, and at the ends of its range where the program gave it any that are not
    open: one that may become too large breaks the rule too. One without a hint or range is not checked.
    """

    max: int
    min: int = 0

    def validate(self) -> None:
        DimsRule.validate(self)
        if self.max < 1:
            raise BadValue("max", f"max is {self.max}; it must be 1 or more", hint="leave the rule out for no limit")
        if not 0 <= self.min <= self.max:
            raise BadValue("min", f"min is {self.min}; it must be 0 to max, which is {self.max}", hint="0 is no limit")

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """Every size below or above the limits; of a symbol, its hint and the ends of its range."""
        bad = [(place, dim) for place, dim in self.sizes(tensor, role) if not self._fits(dim)]
        if bad and tensor.numel != 0:
            found = ", ".join([f"dim {place} is {spelled_dim(dim)}" for place, dim in bad])
            wanted = f"at most {self.max}" if not self.min else f"{self.min} to {self.max}"
            yield Finding(found, wanted, self._fix(bad))

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        known = [
            size
            for signature in signatures
            for _, tensor, role in self.labelled(signature)
            for _, dim in self.sizes(tensor, role)
            for size in _known(dim)
        ]
        return replace(self, min=min(self.min, *known), max=max(self.max, *known)) if known else None

    def contradicts(self, other: Constraint) -> str:
        if isinstance(other, DimsRule) and self.dims != other.dims and "all" not in (self.dims, other.dims):
            return ""
        if isinstance(other, Alignment) and other.unit == "elements":
            fits = self.max // other.multiple * other.multiple >= max(self.min, 1)
            sizes = f"from {self.min} to" if self.min else "up to"
            return "" if fits else f"no size {sizes} {self.max} is a multiple of {other.multiple}"
        if isinstance(other, MaxDim) and (self.max < other.min or other.max < self.min):
            return "they allow no size in common"
        return ""

    def _fits(self, dim: Dim) -> bool:
        return all(self.min <= size <= self.max for size in _known(dim))

    def _fix(self, bad: list[tuple[int, Dim]]) -> str:
        largest = max(size for _, dim in bad for size in _known(dim))
        if largest <= self.max and all(isinstance(dim, int) for _, dim in bad):
            return f"pad it to {self.min} or more"
        if all(self.min <= (hint_of(dim) or self.min) <= self.max for _, dim in bad):
            if any(isinstance(dim, Sym) and dim.hint is None for _, dim in bad):
                return f"bound it: torch._check(size <= {self.max})"
            return f"bound it: torch._dynamo.mark_dynamic(x, dim, min={max(self.min, 2)}, max={self.max})"
        return f"split it: {-(-largest // self.max)} pieces or more (torch.chunk)"


def _known(dim: Dim) -> list[int]:
    """The size, or all that is known of a symbol's: its hint, and the ends of its range, where that has one."""
    if isinstance(dim, int):
        return [dim]
    return [size for size in (dim.hint, dim.high, dim.low if dim.high is not None else None) if size is not None]
