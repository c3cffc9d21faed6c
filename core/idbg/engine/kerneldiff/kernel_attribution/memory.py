"""Address, compare and copy the memory of a launch's buffers.

A buffer of a wrapper is only a name for some memory: `buf7 = buf0; del buf0 # reuse`. What is compared is the memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from idbg.engine.compat import fx
from idbg.engine.compat.torch_types import tree_leaves


@dataclass(frozen=True)
class MemoryRegion:
    """The address and layout of a strided tensor, without a reference to it. `start` is the address of its storage."""

    start: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, value: Tensor) -> "MemoryRegion":
        """The region of a tensor that has memory."""
        start = value.untyped_storage().data_ptr()
        return cls(start, int(value.storage_offset()), tuple(value.shape), value.stride(), value.dtype, value.device)

    @property
    def span(self) -> tuple[int, int]:
        """The address of the first byte, and the address after the last."""
        size = self.dtype.itemsize
        first = self.start + self.offset * size
        if not all(self.shape):
            return first, first
        return first, first + size * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)))

    @property
    def layout(self) -> Tensor:
        """A meta tensor with this layout."""
        first, end = self.span
        whole = torch.empty(self.offset + (end - first) // self.dtype.itemsize, dtype=self.dtype, device="meta")
        return whole.as_strided(self.shape, self.stride, self.offset)

    def within(self, storage: torch.UntypedStorage) -> Tensor:
        """The tensor with this layout in another storage."""
        empty = torch.empty(0, dtype=self.dtype, device=storage.device)
        return empty.set_(storage, self.offset, self.shape, self.stride)

    def read_through(self, other: Tensor) -> Tensor | None:
        """The tensor of this region, taken from another tensor with the same storage; None if the storage is another
        one.
        """
        storage = other.untyped_storage()
        own = storage.data_ptr()
        moved = self.start + self.offset * self.dtype.itemsize - own
        if not own <= self.span[0] <= self.span[1] <= own + storage.nbytes() or moved % self.dtype.itemsize:
            return None
        offset = moved // self.dtype.itemsize
        return torch.empty(0, dtype=self.dtype, device=other.device).set_(storage, offset, self.shape, self.stride)


def strided(value: object) -> bool:
    """Whether it is a tensor with strided memory."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_meta


def overlap(one: MemoryRegion, others: Iterable[object]) -> bool:
    """Whether one of these tensors overlaps the region."""
    first, end = one.span
    for other in tree_leaves(list(others)):
        if strided(other):
            start, stop = MemoryRegion.of(other).span
            if start < end and first < stop:
                return True
    return False


_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether both hold the same bits, element by element."""
    word = _WORDS.get(one.dtype.itemsize)
    if word is None:
        one, other, word = torch.view_as_real(one), torch.view_as_real(other), torch.int64
    return torch.equal(one.view(word), other.view(word))


class MemoryCopies:
    """Copies of storages. Tensors that share memory share it in the copies."""

    def __init__(self) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}

    def add(self, value: object) -> object:
        """Copy a tensor's storage and return its region; return anything else unchanged."""
        if not isinstance(value, Tensor):
            return value
        if not strided(value):
            return value.detach().clone()
        place = MemoryRegion.of(value)
        if place.start not in self.storages:
            self.storages[place.start] = fx.storage_copy(value.untyped_storage())
        return place

    def at(self, place: MemoryRegion) -> Tensor:
        """The tensor of this region in the copies."""
        return place.within(self.storages[place.start])

    def duplicate(self) -> "MemoryCopies":
        """Copies of the copies, as they are now."""
        copies = MemoryCopies()
        copies.storages = {start: fx.storage_copy(storage) for start, storage in self.storages.items()}
        return copies
