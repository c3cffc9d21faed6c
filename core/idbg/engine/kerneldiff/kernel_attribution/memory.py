"""Which memory does a buffer have, and has it been changed?

A buffer of a wrapper is a name for a while: `buf7 = buf0; del buf0  # reuse`. What counts is the memory itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class MemoryRegion:
    """Where a strided tensor lies, without holding it: `start` is the address of its storage."""

    start: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, value: Tensor) -> "MemoryRegion":
        """The place of a tensor that has memory."""
        start = value.untyped_storage().data_ptr()
        return cls(start, int(value.storage_offset()), tuple(value.shape), value.stride(), value.dtype, value.device)

    @property
    def span(self) -> tuple[int, int]:
        """The addresses from its first byte to behind its last."""
        size = self.dtype.itemsize
        first = self.start + self.offset * size
        if not all(self.shape):
            return first, first
        return first, first + size * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)))

    @property
    def form(self) -> Tensor:
        """A tensor of this form, with no memory."""
        first, end = self.span
        whole = torch.empty(self.offset + (end - first) // self.dtype.itemsize, dtype=self.dtype, device="meta")
        return whole.as_strided(self.shape, self.stride, self.offset)

    def within(self, storage: torch.UntypedStorage) -> Tensor:
        """The tensor at the same place of another storage, or of the same one."""
        empty = torch.empty(0, dtype=self.dtype, device=storage.device)
        return empty.set_(storage, self.offset, self.shape, self.stride)

    def seen_from(self, other: Tensor) -> Tensor | None:
        """The tensor at this place, by way of another that has the same storage; None where it has not."""
        storage = other.untyped_storage()
        own = storage.data_ptr()
        moved = self.start + self.offset * self.dtype.itemsize - own
        if not own <= self.span[0] <= self.span[1] <= own + storage.nbytes() or moved % self.dtype.itemsize:
            return None
        offset = moved // self.dtype.itemsize
        return torch.empty(0, dtype=self.dtype, device=other.device).set_(storage, offset, self.shape, self.stride)


def strided(value: object) -> bool:
    """Whether it is a tensor with memory that can be looked at as such."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta


def overlap(one: MemoryRegion, others: Iterable[object]) -> bool:
    """Whether one of these tensors has memory of the place."""
    first, end = one.span
    for other in tree_leaves(list(others)):
        if strided(other):
            start, stop = MemoryRegion.of(other).span
            if start < end and first < stop:
                return True
    return False


_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def same(one: Tensor, other: Tensor) -> bool:
    """Whether both hold the same bits, element by element."""
    word = _WORDS.get(one.dtype.itemsize)
    if word is None:
        one, other, word = torch.view_as_real(one), torch.view_as_real(other), torch.int64
    return torch.equal(one.view(word), other.view(word))


class MemoryCopies:
    """Copies of memory, storage by storage: tensors that share memory share it in the copies too."""

    def __init__(self) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}

    def take(self, value: object) -> object:
        """Copy the memory of a tensor, and give its place, at which the copy has it; anything else as it is."""
        if not isinstance(value, Tensor):
            return value
        if not strided(value):
            return value.detach().clone()
        place = MemoryRegion.of(value)
        if place.start not in self.storages:
            self.storages[place.start] = value.untyped_storage().clone()  # type: ignore[no-untyped-call]
        return place

    def at(self, place: MemoryRegion) -> Tensor:
        """The tensor at this place, in the copies."""
        return place.within(self.storages[place.start])

    def again(self) -> "MemoryCopies":
        """Copies of the copies, as they are now."""
        copies = MemoryCopies()
        copies.storages = {start: storage.clone() for start, storage in self.storages.items()}  # type: ignore[no-untyped-call]
        return copies
