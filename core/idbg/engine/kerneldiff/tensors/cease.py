"""Where does a tensor hold NaN or an infinity?"""

from dataclasses import dataclass
from typing import Literal, TypeGuard

import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors.wrapped import parts

What = Literal["nan", "inf"]
KINDS: tuple[What, ...] = ("nan", "inf")


@dataclass(frozen=True)
class Nonfinite:
    """So many elements of a kind; the first of them is at `index`."""

    what: What
    index: tuple[int, ...]
    count: int


def can_hold(value: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor of numbers that may be NaN, whose elements can be looked at."""
    if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()):
        return False
    return value.layout == torch.strided and not value.is_quantized and not value.is_meta and not parts(value)


def is_finite(value: Tensor) -> bool:
    """Whether every element is a number."""
    return bool(_readable(value).isfinite().all())


def mask(value: Tensor, what: What) -> Tensor:
    """True where an element is of this kind."""
    readable = _readable(value)
    return readable.isnan() if what == "nan" else readable.isinf()


def first_of(where: Tensor, what: What) -> Nonfinite | None:
    """What a mask marks; None where it marks nothing."""
    count = int(where.sum())
    if not count:
        return None
    first = int(where.reshape(-1).to(torch.uint8).argmax())
    index: list[int] = []
    for size in reversed(where.shape):
        index.append(first % size)
        first //= size
    return Nonfinite(what, tuple(reversed(index)), count)


def _readable(value: Tensor) -> Tensor:
    """In a dtype whose elements torch can look at: it cannot compute with those of 8 bits."""
    return value.float() if value.element_size() == 1 else value
