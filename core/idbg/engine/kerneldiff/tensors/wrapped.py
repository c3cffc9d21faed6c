"""Find the tensors inside of one that has no memory of its own: a wrapper, a fake or a freed tensor.

Its elements must not be read at its address, which is 0.
"""

import torch
from torch import Tensor
from torch.masked import MaskedTensor

from idbg.engine.compat import comparing
from idbg.engine.compat.torch_types import FakeTensor
from idbg.schema.remarks import Remark


def parts(value: Tensor) -> dict[str, Tensor]:
    """The tensors inside a wrapper by the expression that reaches them, down to those that wrap nothing; empty
    for any other tensor. Masked elements of a masked tensor are zeros.
    """
    if not _wraps(value):
        return {}
    inner: dict[str, Tensor] = {}
    for step, held in _held(value.detach()).items():
        below = parts(held)
        inner |= {step + further: tensor for further, tensor in below.items()} or {step: held}
    return inner


def _wraps(value: Tensor) -> bool:
    if type(value) is Tensor or value.is_nested:
        return False
    return comparing.wraps_others(value) or isinstance(value, MaskedTensor)


def _held(value: Tensor) -> dict[str, Tensor]:
    if isinstance(value, MaskedTensor):
        return {".to_tensor(0)": value.to_tensor(0), ".get_mask()": value.get_mask()}  # type: ignore[no-untyped-call]
    names, _ = value.__tensor_flatten__()  # type: ignore[attr-defined]
    held = {f".{name}": getattr(value, name) for name in names}  # a DTensor's mesh is among them
    return {step: each for step, each in held.items() if isinstance(each, Tensor)}


def equal(one: Tensor, other: Tensor) -> bool:
    """Whether all values are equal; torch.equal does not support wrappers, or communicates with other ranks."""
    ours, theirs = (parts(each) or {"": each} for each in (one, other))
    return ours.keys() == theirs.keys() and all(torch.equal(each, theirs[step]) for step, each in ours.items())


def unwrapped(value: Tensor) -> Tensor:
    """The one tensor of the same shape that a wrapper holds (of a DTensor on one rank: its local one), or itself."""
    held = parts(value) if type(value) is not Tensor else {}
    if len(held) != 1:
        return value
    (only,) = held.values()
    return only if only.shape == value.shape and only.dtype == value.dtype else value


def no_memory(value: Tensor) -> Remark | None:
    """Why a strided tensor has no memory; None if it has."""
    if address(value) or value.numel() == 0 or comparing.is_zeros(value):
        return None
    if type(value) is Tensor:
        return Remark("freed")
    kind, held = type(value).__name__, parts(value)
    if not held:
        return Remark("no values", kind)
    if (inside := unwrapped(value)) is not value:
        return no_memory(inside)
    return Remark("several tensors", kind, " and ".join(step[1:] for step in held))


def address(value: Tensor) -> int:
    """Its address; 0 if it has no memory."""
    if isinstance(value, FakeTensor):  # it warns, and later torches raise
        return 0
    try:
        return value.data_ptr()
    except RuntimeError:  # torch.func's have no storage
        return 0
