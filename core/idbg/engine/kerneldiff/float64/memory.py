"""Keep float64 within the memory that its device has free: what was used longest ago moves to the host, then to a file.

What moves is a tensor's storage. It stays there without memory, so its views, and what autograd has saved, stay what
they are, and it is filled again before an op takes it. Only results of torch's own ops move, never a tensor of the
program.
"""

import ctypes
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO, TypeVar

import torch
from torch import Tensor, UntypedStorage

from idbg.engine.compat import comparing, fx, gpu
from idbg.engine.compat.torch_types import OpOverload, tree_leaves, tree_map
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode
from idbg.engine.kerneldiff.tensors.float64_device import float64_device, free_memory, total_memory, usual_dtype
from idbg.format.amounts import size

SMALLEST = 2**20  # bytes: what is smaller stays
_RESERVED = {"cuda": 1 / 4, "cpu": 1 / 8}
"""The share of a device's memory that stays free for what an op needs beside its results."""
_OWN = ("aten", "prims")  # whose results have memory of their own, or that of an argument
_T = TypeVar("_T")


@dataclass
class _Storage:
    """One storage that may move. `copy`: its bytes, while it has no memory (`is_away`), and after that until an op
    writes to it.
    """

    weak: fx.WeakStorage
    size: int
    copy: Tensor | IO[bytes] | None = None
    is_away: bool = False


@dataclass
class Memory:
    """The storages that may move. `limit`: the bytes that they may have on their device, 0 for what is free there;
    `moved`: the bytes that have moved so far.
    """

    limit: int = 0
    moved: int = 0
    _storages: OrderedDict[int, _Storage] = field(default_factory=OrderedDict)  # the longest unused first
    _in_use: set[int] = field(default_factory=set)
    _pinned: set[int] = field(default_factory=set)

    def fill(self, value: object, *, begins: bool = False) -> set[int]:
        """Give every tensor in the value its memory; returns their storages. `begins`: an op begins, which takes these
        and what is filled until the next one begins.
        """
        storages = list(_storages_of(value))
        found = {each._cdata for each in storages}
        self._in_use = found if begins else self._in_use | found
        for storage in storages:
            if (record := self._storages.get(storage._cdata)) is not None:
                self._storages.move_to_end(storage._cdata)
                if record.is_away:
                    self._fill(storage, record)
        return found

    def ran(self, func: object, result: object, taken: set[int]) -> None:
        """An op ran, and took these storages: what it wrote to has no copy; what is new may move."""
        own = owns_results(func)
        if not own or fx.written(func):
            for key, record in self._storages.items():
                if not record.is_away and (not own or key in self._in_use or key in taken):
                    record.copy = None
        if own:  # another op may return a tensor of the program
            self.hold(result, taken)

    def hold(self, value: object, besides: set[int]) -> None:
        """From now on, what is new in an op's result may move; `besides`: the storages that the op took."""
        fresh = [each for each in _storages_of(value) if each._cdata not in besides and _may_move(each)]
        for storage in fresh:
            if storage._cdata not in self._storages:
                self._storages[storage._cdata] = _Storage(fx.WeakStorage(storage), storage.nbytes())
        if fresh:
            self.make_room(fresh[0].device, besides.union(each._cdata for each in fresh))

    def make_room(self, device: torch.device, besides: Collection[int] = ()) -> None:
        """Move what is more than should be in use on this device, but for these storages."""
        if self._storages and device.type in _RESERVED and (over := self._over(device)) > 0:
            self._move(besides, over)

    def run(self, func: object, op: Callable[[], _T]) -> _T:
        """Run an op; where its device has too little memory, once more, after all that it does not take has moved."""
        try:
            return op()
        except torch.OutOfMemoryError:
            if not _may_run_again(func) or not self._move(set(), sys.maxsize):
                raise
        gpu.release_memory()
        return op()

    def release(self, value: _T) -> _T:
        """The value, for ops outside of this module: it has its memory, and moves no more."""
        for key in self.fill(value):
            self._storages.pop(key, None)
        return value

    def pin(self, value: object) -> None:
        """Fill the value, for ops outside of this module; it does not move until `unpin`."""
        self._pinned |= self.fill(value)

    def unpin(self) -> None:
        """What was pinned may move again."""
        self._pinned.clear()

    def outside(self, value: _T) -> _T:
        """The same; where memory is short, with tensors in host memory in the place of those that may move."""
        with comparing.no_modes(), comparing.tensors_as_they_are():
            if self.moved:
                self._move(set(), sys.maxsize)
            there: _T = tree_map(self._in_host_memory, value)
            return self.release(there)

    def inside(self, value: Tensor, device: torch.device) -> Tensor:
        """What `outside` returned as a tensor of the device, which has no memory there until an op takes it."""
        with comparing.no_modes(), comparing.tensors_as_they_are():
            flat = fx.storage_values(value.untyped_storage())
            storage = torch.empty(flat.numel(), dtype=torch.uint8, device=device).untyped_storage()
            empty = torch.empty(0, dtype=value.dtype, device=device)
            here = empty.set_(storage, value.storage_offset(), value.shape, value.stride())
            storage.resize_(0)
        self._storages[storage._cdata] = _Storage(fx.WeakStorage(storage), flat.nbytes, flat, is_away=True)
        return here

    def close(self, *, fill: bool = True) -> None:
        """Release all that still lives. Without `fill` (after a failure) what has moved stays without memory."""
        with comparing.no_modes(), comparing.tensors_as_they_are():
            for record in list(self._storages.values()):
                storage = record.weak.storage()
                if fill and storage is not None and record.is_away:
                    self._fill(storage, record)
        self._storages.clear()
        self._in_use.clear()
        self._pinned.clear()

    def _fill(self, storage: UntypedStorage, record: _Storage) -> None:
        try:
            storage.resize_(record.size)
        except torch.OutOfMemoryError:
            if not self._move(self._in_use, sys.maxsize):
                raise
            gpu.release_memory()
            storage.resize_(record.size)
        if record.copy is not None:
            _copy_back(fx.storage_values(storage), record.copy)
        record.is_away = False

    def _in_host_memory(self, value: object) -> object:
        if not isinstance(value, Tensor) or (storage := _storage_of(value)) is None:
            return value
        record = self._storages.get(storage._cdata)
        if record is None or record.copy is None or not record.is_away:
            return value
        if not isinstance(record.copy, Tensor):
            record.copy = torch.from_file(record.copy.name, size=record.size, dtype=torch.uint8)
        return record.copy.view(value.dtype).as_strided(value.shape, value.stride(), value.storage_offset())

    def _over(self, device: torch.device) -> int:
        """How many bytes more are in use than should be."""
        if self.limit:
            return sum(each.size for each in self._storages.values() if not each.is_away) - self.limit
        free, total = (free_memory(), total_memory()) if device.type == "cpu" else gpu.memory(device)
        return int(total * _RESERVED[device.type]) - free

    def _move(self, besides: Collection[int], least: int) -> int:
        """Move at least so many bytes, what was used longest ago first; returns how many that were."""
        moved = 0
        for key, record in list(self._storages.items()):
            storage = record.weak.storage()
            if storage is None:
                del self._storages[key]
            elif moved < least and not record.is_away and key not in besides and key not in self._pinned:
                record.copy = record.copy if record.copy is not None else _copy(fx.storage_values(storage))
                if record.copy is not None:
                    storage.resize_(0)
                    record.is_away = True
                    moved += record.size
        self.moved += moved
        return moved


class WithinMemory(OpMode):
    """While it is active, what each op takes has its memory, and its results may move."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        """The op's result."""
        taken: set[int] = set()

        def op() -> object:
            taken.update(self.memory.fill((args, kwargs), begins=True))
            return func(*args, **kwargs)

        result = self.memory.run(func, op)
        self.memory.ran(func, result, taken)
        return result


_current: ContextVar[Memory | None] = ContextVar("_current", default=None)


def current_memory() -> Memory:
    """That of the running comparison."""
    return _current.get() or Memory()


@contextmanager
def memory_limited(limit: int = 0) -> Iterator[Memory]:
    """While active, float64 is kept within this many bytes, or what its device has free."""
    memory = Memory(limit)
    token = _current.set(memory)
    try:
        yield memory
    finally:
        _current.reset(token)


def foreseen(tensors: Sequence[Tensor], peak: int) -> str:
    """How a program of these tensors, which took `peak` bytes of its device, will be computed in float64, as the end of
    a name; "" where it fits.
    """
    device = next((each.device for each in tensors if each.is_cuda), None)
    if device is None or float64_device(device) != device:
        return ""
    needs, (free, total) = peak * torch.float64.itemsize // usual_dtype(tensors).itemsize, gpu.memory(device)
    room = current_memory().limit or free - int(total * _RESERVED["cuda"])
    if needs <= room:
        return ""
    return f" (needs about {size(needs)}, {size(max(room, 0))} may be used: the rest moves through host memory)"


def _storages_of(value: object) -> Iterator[UntypedStorage]:
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor) and (storage := _storage_of(leaf)) is not None:
            yield storage


def _may_move(storage: UntypedStorage) -> bool:
    return storage.nbytes() >= SMALLEST and storage.resizable()


def _storage_of(tensor: Tensor) -> UntypedStorage | None:
    """The storage of a plain tensor on a device of which the free memory is known."""
    is_plain = type(tensor) in (Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
    return tensor.untyped_storage() if is_plain and tensor.device.type in _RESERVED else None


def _copy_back(values: Tensor, copy: Tensor | IO[bytes]) -> None:
    """Copy what has moved into a storage; by a tensor of its own, as autograd counts what is written by others."""
    if isinstance(copy, Tensor):
        values.copy_(copy)
        return
    copy.seek(0)
    here = values if values.is_cpu else torch.empty_like(values, device="cpu")
    copy.readinto(_bytes(here))  # type: ignore[attr-defined]
    values.copy_(here)


def _bytes(values: Tensor) -> memoryview:
    """The memory of a flat tensor on the CPU. `numpy` would make its storage one that cannot be resized."""
    return memoryview((ctypes.c_char * values.nbytes).from_address(values.data_ptr())).cast("B")


def owns_results(func: object) -> bool:
    """Whether what the op returns is new, or what it took: another's may be a tensor of the program."""
    return isinstance(func, OpOverload) and func.namespace in _OWN


def _may_run_again(func: object) -> bool:
    """Whether an op that had too little memory has written nothing yet: one that changes a list may have begun."""
    begins = fx.op_name(func).startswith(("_foreach_", "_fused_", "_amp_"))
    return owns_results(func) and not begins


def _copy(values: Tensor) -> Tensor | IO[bytes] | None:
    """A copy in host memory, or in a temporary file; None where neither has room. Not in pinned memory: torch rounds it
    up to powers of two and does not return it (110 of 125 GiB were in use for 31 that had moved).
    """
    if values.is_cuda and free_memory() > 2 * values.nbytes + total_memory() * _RESERVED["cpu"]:
        return values.cpu()
    folder = tempfile.gettempdir()
    if shutil.disk_usage(folder).free < 2 * values.nbytes:
        return None
    file = tempfile.NamedTemporaryFile(prefix="idbg-float64-", buffering=0)  # noqa: SIM115
    here = values.cpu()
    rest = _bytes(here)
    while rest:
        rest = rest[file.write(rest) :]
    return file
