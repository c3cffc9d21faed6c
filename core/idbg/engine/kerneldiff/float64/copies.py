"""Replace the data of a program's tensors by float64 copies, and restore it.

torch refuses that across some devices (XLA, and those of other packages): there a substitute takes the tensor's place
in every call of torch's functions. A large weight has no copy beside all the others: its float64 tensor has a shape and
no memory. Its values are filled in for each op that takes it, and dropped right after, so that about one weight is
in memory twice at a time. Autograd saves that same tensor, so that gradients are in float64 too. One that an op writes
to keeps its values from then on.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from idbg.engine.compat import comparing, fx
from idbg.engine.compat.torch_types import OpOverload, tree_leaves, tree_map
from idbg.engine.kerneldiff.tensors.float64_device import is_converted, is_moved, to_float64

LARGE = 2**20  # bytes: below it a copy costs less than filling it in again and again
_lazy: dict[int, tuple[Tensor, Tensor]] = {}
"""Each weight without memory, by its storage: the float64 tensor, and the program's own values."""
READS_MEMORY = (Tensor.numpy, Tensor.__array__, Tensor.__dlpack__, Tensor.tolist, Tensor.data_ptr)
"""What reads memory without an op."""


@contextmanager
def float64_copies(tensors: Iterable[Tensor], *, whole: bool = False) -> Iterator[None]:
    """While active, these tensors (leaves of autograd) hold float64 copies, on the CPU if their device has no float64;
    what is written to them is lost after. `whole` gives large weights copies with memory, which the caller can keep.
    """
    kept = [(tensor, tensor.data) for tensor in {id(each): each for each in tensors}.values() if _is_replaced(tensor)]
    by_memory = Counter((fx.storage_of(data)[0], data.dtype) for _, data in kept)
    bases: dict[int, Tensor] = {}
    substitutes: dict[int, Tensor] = {}
    lazy: list[Tensor] = []
    try:
        for tensor, data in kept:
            memory = fx.storage_of(data)[0]
            if by_memory[memory, data.dtype] == 1:
                is_lazy = not whole and not is_moved(data) and data.dtype.is_floating_point and _can_be_lazy(tensor)
                copy = _without_memory(data) if is_lazy else to_float64(data)
                lazy += [copy] if is_lazy else []
            else:
                if memory not in bases:  # views of one memory stay views of one
                    bases[memory] = to_float64(fx.storage_values(data.untyped_storage(), data.dtype))
                copy = bases[memory].as_strided(data.shape, data.stride(), data.storage_offset())
            if comparing.takes_data_of(tensor, copy):
                tensor.data = copy
            else:
                substitutes[id(tensor)] = _substitute(tensor, copy)
        with _Substitution(substitutes) if substitutes or lazy else nullcontext():
            yield
    finally:
        for copy in lazy:
            _lazy.pop(fx.storage_of(copy)[0], None)
        for tensor, data in kept:
            if id(tensor) not in substitutes:
                tensor.data = data


def _is_replaced(tensor: Tensor) -> bool:
    if not is_converted(tensor):
        return False
    return tensor.is_leaf and tensor.layout == torch.strided and not tensor.is_inference()


def _substitute(tensor: Tensor, copy: Tensor) -> Tensor:
    substitute = copy.data.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        substitute.grad = to_float64(tensor.grad)
    return substitute


class _Substitution(TorchFunctionMode):
    """While active, torch's functions, methods and attributes receive the substitute of a tensor (by its id), and what
    reads a weight's memory without an op finds its values there, from then on.
    """

    def __init__(self, substitutes: Mapping[int, Tensor]) -> None:
        super().__init__()
        self.substitutes = substitutes

    def __torch_function__(
        self, func: Callable[..., object], types: object, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> object:
        if func in READS_MEMORY and args and isinstance(args[0], Tensor) and has_no_memory(args[0]):
            _fill(*_lazy.pop(fx.storage_of(args[0])[0]))
        kwargs = dict(kwargs or {})
        if self.substitutes:
            args, kwargs = tree_map(lambda value: self.substitutes.get(id(value), value), (args, kwargs))
        return func(*args, **kwargs)


def _can_be_lazy(tensor: Tensor) -> bool:
    """Whether it is a large weight, and the only tensor in its memory."""
    data = tensor.data
    if not isinstance(tensor, torch.nn.Parameter) or data.device.type not in ("cpu", "cuda") or data.nbytes < LARGE:
        return False
    return data.untyped_storage().nbytes() == data.nbytes


def _without_memory(data: Tensor) -> Tensor:
    """A float64 tensor of these strides; `weights_filled` fills in its values."""
    empty = torch.empty_strided(data.shape, data.stride(), dtype=torch.float64, device=data.device)
    empty.untyped_storage().resize_(0)
    _lazy[fx.storage_of(empty)[0]] = empty, data
    return empty


def has_no_memory(tensor: Tensor) -> bool:
    """Whether it is a large weight's copy, which nothing has written to."""
    return bool(_lazy) and fx.storage_of(tensor)[0] in _lazy


@contextmanager
def weights_filled(func: object, args: object, kwargs: object) -> Iterator[None]:
    """While active, the large weights that the op takes hold their values."""
    if not _lazy:
        yield
        return
    views = isinstance(func, OpOverload) and func.is_view  # these need memory, and read nothing
    taken = {fx.storage_of(leaf)[0] for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)} & _lazy.keys()
    for memory in taken:
        _fill(*_lazy[memory], values=not views)
    try:
        yield
    finally:
        for memory in taken & _lazy.keys():
            if isinstance(func, OpOverload) and func._schema.is_mutable:
                _lazy.pop(memory)
            else:
                _lazy[memory][0].untyped_storage().resize_(0)


def _fill(empty: Tensor, data: Tensor, *, values: bool = True) -> None:
    storage = empty.untyped_storage()
    if storage.nbytes() == 0:
        storage.resize_(data.numel() * 8)
    if values:
        # by a tensor of its own: autograd counts what is written by that which it has saved
        torch.empty(0, dtype=torch.float64, device=data.device).set_(storage, 0, data.shape, data.stride()).copy_(data)
