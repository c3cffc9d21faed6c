"""Which tensor dimensions are not a multiple of what the hardware wants?"""

from collections.abc import Iterator, Sequence
from math import gcd, isqrt, prod
from typing import Literal, Self

from msgspec.structs import replace

from idbg.constraints.base import BadValue, Finding
from idbg.constraints.dims import DimsRule
from idbg.constraints.look import Look
from idbg.constraints.whole import Whole
from idbg.records import Role, TensorMeta, hint_of
from idbg.sizes import spelled_dim, spelled_percent


class Alignment(DimsRule, frozen=True, tag="alignment"):
    """Sizes of `dims` must be multiples of `multiple`, in elements or, with `unit = "bytes"`, in bytes.

    Bytes are the size times the element's, so they are meant for the dimension that lies together in memory. A symbolic
    size is checked at its hint. One without a hint is known only when the program runs, so it breaks the rule.
    """

    multiple: int
    unit: Literal["elements", "bytes"] = "elements"

    def validate(self) -> None:
        DimsRule.validate(self)
        if self.multiple < 1:
            raise BadValue("multiple", f"multiple is {self.multiple}; it must be 1 or more", hint="1 allows every size")

    def check_tensor(self, tensor: TensorMeta, role: Role, look: Look) -> Iterator[Finding]:
        multiple = self._elements(tensor)
        if multiple == 1:
            return
        bad = [(place, dim) for place, dim in self.sizes(tensor, role) if not _is_multiple(hint_of(dim), multiple)]
        if not bad:
            return
        found = ", ".join([f"dim {place} is {spelled_dim(dim)}" for place, dim in bad])
        wanted = f"a multiple of {multiple}"
        if self.unit == "bytes":
            wanted += f" ({self.multiple} bytes of {tensor.dtype})"
        padded = self.padded(tensor, role)
        if padded is None:
            yield Finding(found, wanted, "give the size a bound: pad to a fixed size before this point")
            return
        pads = [(place, padded[place]) for place, _ in bad]
        yield Finding(found, wanted, _fix(pads) + _cost(tensor, padded))

    def padded(self, tensor: TensorMeta, role: Role) -> tuple[int, ...] | None:
        """The shape that the hardware makes of it, or needs; None if a size has no hint."""
        multiple = self._elements(tensor)
        shape = [hint_of(dim) for dim in tensor.shape]
        for place, _ in self.sizes(tensor, role):
            size = shape[place]
            shape[place] = None if size is None else -(-size // multiple) * multiple
        known = tuple(size for size in shape if size is not None)
        return known if len(known) == len(shape) else None

    def relaxed(self, looks: Sequence[Look], wholes: Sequence[Whole] = ()) -> Self | None:
        """The largest multiple, up to this one, that all sizes have; 1 where a size is not known."""
        common = 0
        for look in looks:
            for _, tensor, role in self.labelled(look):
                item = tensor.itemsize if self.unit == "bytes" else 1
                for _, dim in self.sizes(tensor, role):
                    size = hint_of(dim)
                    common = gcd(common, 1 if size is None else size * item)
        return replace(self, multiple=_largest_divisor(common, self.multiple))

    def _elements(self, tensor: TensorMeta) -> int:
        """The multiple in elements of this tensor."""
        if self.unit == "elements" or not tensor.itemsize:
            return self.multiple
        return self.multiple // gcd(self.multiple, tensor.itemsize)


def _fix(pads: list[tuple[int, int]]) -> str:
    if len(pads) == 1:
        return f"pad to {pads[0][1]}"
    return "pad " + ", ".join([f"dim {position} to {size}" for position, size in pads])


def _largest_divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`; everything divides 0."""
    if number % most == 0:
        return most
    small = (value for value in range(1, min(isqrt(number), most) + 1) if number % value == 0)
    return max(divisor for value in small for divisor in (value, number // value) if divisor <= most)


def _is_multiple(size: int | None, multiple: int) -> bool:
    return size is not None and size % multiple == 0


def _cost(tensor: TensorMeta, padded: tuple[int, ...]) -> str:
    """ ": +60 % bytes", where the tensor has any."""
    before = tensor.numel
    return f": +{spelled_percent((prod(padded) - before) * 100 / before)} bytes" if before else ""
