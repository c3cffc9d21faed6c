"""How does the program find float64 copies where its own parameters, buffers and inputs were, and get those back?

Their data is replaced. torch refuses that across the borders of some devices (XLA, and those that packages bring):
there every function of torch that is given such a tensor is given another in its place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.float64.mode import is_converted, to_float64
from idbg.engine.kerneldiff.float64.where_taken import ReadInPlace, can_wait, dropped, without_memory
from idbg.engine.kerneldiff.tensors.float64_device import is_moved


@contextmanager
def float64_copies(tensors: Iterable[Tensor], *, whole: bool = False) -> Iterator[None]:
    """While it lasts, these tensors (leaves of autograd) hold float64 copies, on the CPU where their device has no
    float64; what is written to them is lost after. Large weights do where Float64's ops take them alone, unless `whole`
    asks for copies that can be kept.
    """
    kept = [(tensor, tensor.data) for tensor in {id(each): each for each in tensors}.values() if _can_be_lent(tensor)]
    by_memory = Counter((fx.storage_of(data)[0], data.dtype) for _, data in kept)
    bases: dict[int, Tensor] = {}
    stand_ins: dict[int, Tensor] = {}
    waiting: list[Tensor] = []
    try:
        for tensor, data in kept:
            memory = fx.storage_of(data)[0]
            if by_memory[memory, data.dtype] == 1:
                waits = not whole and not is_moved(data) and data.dtype.is_floating_point and can_wait(tensor, data)
                copy = without_memory(data) if waits else to_float64(data)
                waiting += [copy] if waits else []
            else:
                if memory not in bases:  # views of one memory stay views of one
                    flat = torch.empty(0, dtype=data.dtype, device=data.device).set_(data.untyped_storage())
                    bases[memory] = to_float64(flat)
                copy = bases[memory].as_strided(data.shape, data.stride(), data.storage_offset())
            if comparing.takes_data_of(tensor, copy):
                tensor.data = copy
            else:
                stand_ins[id(tensor)] = _stand_in(tensor, copy)
        with _InTheirPlace(stand_ins) if stand_ins else nullcontext(), ReadInPlace() if waiting else nullcontext():
            yield
    finally:
        for copy in waiting:
            dropped(copy)
        for tensor, data in kept:
            if id(tensor) not in stand_ins:
                tensor.data = data


def _can_be_lent(tensor: Tensor) -> bool:
    if not is_converted(tensor):
        return False
    return tensor.is_leaf and tensor.layout == torch.strided and not tensor.is_inference()


def _stand_in(tensor: Tensor, copy: Tensor) -> Tensor:
    stand_in = copy.data.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        stand_in.grad = to_float64(tensor.grad)
    return stand_in


class _InTheirPlace(TorchFunctionMode):
    """While it is in force, torch's functions, methods and attributes find the stand-in of a tensor (by its id)."""

    def __init__(self, stand_ins: Mapping[int, Tensor]) -> None:
        super().__init__()
        self.stand_ins = stand_ins

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        args, given = tree_map(lambda value: self.stand_ins.get(id(value), value), (args, dict(kwargs or {})))
        return func(*args, **given)
