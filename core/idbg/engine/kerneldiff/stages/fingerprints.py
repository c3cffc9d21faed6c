"""Tell whether two values are equal but for float64's rounding, without storing them.

A fingerprint is a few sums over the elements in their logical order: a permuted or wrong value has another one, a
reshaped value the same.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors.float64_device import on_float64_device

SAME: Final = 1e-9
"""Of a value's size: two float64 computations of the same thing were seen to be 1e-12 apart, and any plant above."""
_PERIOD = 1009  # of the weights: a prime, so that no layout's stride is in step with it


@dataclass(frozen=True)
class Fingerprint:
    """`count` elements; the root of the sum of their squares; weighted sums; how many are not finite. `whole`: they are
    integers or booleans.
    """

    count: int
    size: float
    sums: tuple[float, ...]
    nonfinite: int
    whole: bool = False

    def same(self, other: "Fingerprint", within: float = SAME) -> bool:
        """Whether both may be fingerprints of one value."""
        if (self.count, self.nonfinite) != (other.count, other.nonfinite):
            return False
        least = within * max(self.size, other.size)
        pairs = zip((self.size, *self.sums), (other.size, *other.sums), strict=True)
        return all(math.isclose(one, two, rel_tol=0.0, abs_tol=least) for one, two in pairs)

    def fits(self, other: "Fingerprint") -> bool:
        """Whether the one value can take the other's place: a mask cannot take that of what it masks."""
        return (self.count, self.whole) == (other.count, other.whole)


def fingerprint(value: object) -> Fingerprint | None:
    """The fingerprint of a tensor of numbers; None of anything else."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_meta:
        return None
    whole = not (value.is_floating_point() or value.is_complex())
    flat = on_float64_device(value.detach()).reshape(-1)
    flat = torch.view_as_real(flat).reshape(-1) if flat.is_complex() else flat
    wide = flat.to(torch.float64)
    finite = wide.isfinite()
    nonfinite = wide.numel() - int(finite.sum())
    if nonfinite:
        wide = torch.where(finite, wide, 0.0)
    weights = _weights(wide.numel() + 1, wide.device)
    sums = [torch.dot(wide, wide), torch.dot(wide, weights[:-1]), torch.dot(wide.abs(), weights[1:])]
    size, *others = torch.stack(sums).tolist()
    return Fingerprint(value.numel(), math.sqrt(size), tuple(others), nonfinite, whole)


_held: dict[torch.device, Tensor] = {}  # the weights of the largest value so far


def _weights(count: int, device: torch.device) -> Tensor:
    """Fixed weights between -1 and 1 with no period that a layout shares."""
    held = _held.get(device)
    if held is None or len(held) < count:
        at = torch.arange(count, device=device, dtype=torch.float64)
        held = _held[device] = torch.sin(at * at % _PERIOD + at / 3 + 1)
    return held[:count]


def forget() -> None:
    """Free the memory of the weights."""
    _held.clear()
