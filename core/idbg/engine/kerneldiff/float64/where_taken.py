"""How is a large weight in float64 without a copy of it beside all the others?

It is lent a float64 tensor that has a shape and no memory. Its values are put there for each op that takes it, and
dropped right after: of all weights about one is held twice at a time. Autograd keeps what it saves by the same tensor,
so that gradients are in float64 too. One that is written to is kept from then on.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from idbg.engine.compat import fx

LARGE = 2**20  # bytes: below it a copy costs less than making it anew
_lent: dict[int, tuple[Tensor, Tensor]] = {}
"""Of each that has no memory, by that: the tensor itself, and the program's own values."""
_READ = (Tensor.numpy, Tensor.__array__, Tensor.__dlpack__, Tensor.tolist, Tensor.data_ptr)
"""What reads memory without an op."""


def can_wait(tensor: Tensor, data: Tensor) -> bool:
    """Whether it is a weight that is worth it, and the only one in its memory."""
    if not isinstance(tensor, torch.nn.Parameter) or data.device.type not in ("cpu", "cuda") or data.nbytes < LARGE:
        return False
    return data.untyped_storage().nbytes() == data.nbytes


def without_memory(data: Tensor) -> Tensor:
    """A float64 tensor that lies as this one does; its values come when they are taken, until `dropped`."""
    empty = torch.empty_strided(data.shape, data.stride(), dtype=torch.float64, device=data.device)
    empty.untyped_storage().resize_(0)
    _lent[fx.storage_of(empty)[0]] = empty, data
    return empty


def dropped(empty: Tensor) -> None:
    """Nothing takes it any more."""
    _lent.pop(fx.storage_of(empty)[0], None)


def has_no_memory(tensor: Tensor) -> bool:
    """Whether nothing has written to it since it was lent."""
    return bool(_lent) and fx.storage_of(tensor)[0] in _lent


@contextmanager
def in_place(func: object, args: object, kwargs: object) -> Iterator[None]:
    """While it lasts, the op finds the values of all that it takes."""
    if not _lent:
        yield
        return
    views = isinstance(func, OpOverload) and func.is_view  # these ask for room, and read nothing
    taken = {fx.storage_of(leaf)[0] for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)} & _lent.keys()
    for memory in taken:
        _fill(*_lent[memory], values=not views)
    try:
        yield
    finally:
        for memory in taken & _lent.keys():
            if isinstance(func, OpOverload) and func._schema.is_mutable:
                _lent.pop(memory)
            else:
                _lent[memory][0].untyped_storage().resize_(0)


def _fill(empty: Tensor, data: Tensor, *, values: bool = True) -> None:
    storage = empty.untyped_storage()
    if storage.nbytes() == 0:
        storage.resize_(data.numel() * 8)
    if values:
        # by a tensor of its own: autograd counts what is written by that which it has saved
        torch.empty(0, dtype=torch.float64, device=data.device).set_(storage, 0, data.shape, data.stride()).copy_(data)


class ReadInPlace(TorchFunctionMode):
    """While it is in force, who reads memory without an op finds the values there, for good."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func in _READ and args and isinstance(args[0], Tensor) and has_no_memory(args[0]):
            _fill(*_lent.pop(fx.storage_of(args[0])[0]))
        return func(*args, **(kwargs or {}))
