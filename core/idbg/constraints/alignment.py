"""Find tensor dimensions that are not a multiple of what the hardware needs."""

import re
from collections.abc import Iterator, Sequence
from math import gcd, isqrt, prod
from typing import Literal, Self

from msgspec.structs import replace

from idbg.analysis.sizes import spelled_dim
from idbg.constraints.base import BadValue, Finding
from idbg.constraints.dims import DimsRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import Dim, Role, TensorMeta, hint_of

_LEADING = re.compile(r"(\d+)\*[a-zA-Z]\w*")


class Alignment(DimsRule, frozen=True, tag="alignment"):
    """Sizes of `dims` must be multiples of `multiple`, in elements or, with `unit = "bytes"`, in bytes.

    Bytes are the size times the element's; "last" is then the dimension whose elements lie together, which in a
    channels_last tensor is that of the channels. A symbolic size is checked at its hint and, where its range has an
    end, over that range. One without a hint is known only when the program runs, so it breaks the rule.
    """

    multiple: int
    unit: Literal["elements", "bytes"] = "elements"

    def validate(self) -> None:
        """A multiple is 1 or more."""
        DimsRule.validate(self)
        if self.multiple < 1:
            raise BadValue("multiple", f"multiple is {self.multiple}; it must be 1 or more", hint="1 allows every size")

    def sizes(self, tensor: TensorMeta, role: Role) -> Iterator[tuple[int, Dim]]:
        """As all rules about sizes; in bytes, "last" is the dimension whose elements lie together."""
        sizes = list(DimsRule.sizes(self, tensor, role))
        if self.unit == "bytes" and self.dims == "last" and sizes:
            place = _innermost(tensor)
            sizes = [(place, tensor.shape[place])]
        yield from sizes

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """One finding a tensor, which names every size that is no multiple."""
        multiple = self._elements(tensor)
        if multiple == 1:
            return
        bad = [(place, dim) for place, dim in self.sizes(tensor, role) if not _is_multiple(dim, multiple)]
        if not bad:
            return
        found = ", ".join([f"dim {place} is {spelled_dim(dim)}" for place, dim in bad])
        wanted = f"a multiple of {multiple}"
        if self.unit == "bytes":
            wanted += f" ({self.multiple} bytes of {tensor.dtype})"
        yield Finding(found, wanted, *self._fix(tensor, role, [place for place, _ in bad]))

    def padded(self, tensor: TensorMeta, role: Role) -> tuple[int, ...] | None:
        """Each size that the rule is about rounded up to the next multiple; None where one has no hint."""
        multiple = self._elements(tensor)
        shape = [hint_of(dim) for dim in tensor.shape]
        for place, _ in self.sizes(tensor, role):
            size = shape[place]
            shape[place] = None if size is None else -(-size // multiple) * multiple
        known = tuple(size for size in shape if size is not None)
        return known if len(known) == len(shape) else None

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The largest multiple, up to this one, that all sizes have; 1 where a size is not known."""
        common = 0
        for signature in signatures:
            for _, tensor, role in self.labelled(signature):
                item = tensor.itemsize if self.unit == "bytes" else 1
                for _, dim in self.sizes(tensor, role):
                    common = gcd(common, _factor(dim) * item)
        return replace(self, multiple=_largest_divisor(common, self.multiple))

    def _fix(self, tensor: TensorMeta, role: Role, places: list[int]) -> tuple[str, float | None]:
        """What to do, and the bytes that it adds."""
        padded = self.padded(tensor, role)
        if padded is None:
            return "give the size a bound: pad to a fixed size before this point", None
        pads = [(place, padded[place]) for place in places if padded[place] != hint_of(tensor.shape[place])]
        if not pads:
            return "give it one size, or one that is always a multiple: its hint is, others of its range are not", None
        return _pad(pads), _added(tensor, padded)

    def _elements(self, tensor: TensorMeta) -> int:
        """The multiple in elements of this tensor."""
        if self.unit == "elements" or not tensor.itemsize:
            return self.multiple
        return self.multiple // gcd(self.multiple, tensor.itemsize)


def _pad(pads: list[tuple[int, int]]) -> str:
    if len(pads) == 1:
        return f"pad to {pads[0][1]}"
    return "pad " + ", ".join([f"dim {position} to {size}" for position, size in pads])


def _largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`; everything divides 0."""
    if number % most == 0:
        return most
    small = (value for value in range(1, min(isqrt(number), most) + 1) if number % value == 0)
    return max(divisor for value in small for divisor in (value, number // value) if divisor <= most)


def _is_multiple(dim: Dim, multiple: int) -> bool:
    """Whether the size, or all that is known of a symbol's, is a multiple."""
    if isinstance(dim, int):
        return dim % multiple == 0
    if dim.hint is None or dim.hint % multiple:
        return False
    return dim.high is None or dim.low == dim.high or _factor(dim) % multiple == 0


def _factor(dim: Dim) -> int:
    """The largest number that is known to divide the size: of "16*s0" 16; of a symbol with an open range its hint."""
    if isinstance(dim, int):
        return dim
    if dim.hint is None:
        return 1
    if dim.high is None or dim.low == dim.high:
        return dim.hint
    leading = _LEADING.fullmatch(dim.expr)
    return int(leading[1]) if leading else 1


def _innermost(tensor: TensorMeta) -> int:
    """The dimension whose elements lie together; the last where the strides do not tell."""
    last = len(tensor.shape) - 1
    if len(tensor.stride) != len(tensor.shape) or tensor.stride[last] == 1:
        return last
    dense = [place for place, step in enumerate(tensor.stride) if step == 1 and tensor.shape[place] != 1]
    return dense[-1] if dense else last


def _added(tensor: TensorMeta, padded: tuple[int, ...]) -> float | None:
    """The bytes that padding adds, as a share of the tensor's, if it has any."""
    before = tensor.numel
    return (prod(padded) - before) / before if before else None
