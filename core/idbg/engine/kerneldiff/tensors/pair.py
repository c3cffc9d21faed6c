"""Check that two tensors can be compared, and make them readable."""

from functools import cached_property, lru_cache

import msgspec
import torch
from torch import Tensor

from idbg.engine.kerneldiff.tensors.figures import Grid, grid_of
from idbg.engine.kerneldiff.tensors.float64_device import on_float64_device
from idbg.engine.kerneldiff.tensors.wrapped import address, no_memory, unwrapped
from idbg.schema.diff import FailedBy, TensorDiff
from idbg.schema.graphs import TensorMeta
from idbg.schema.remarks import Remark


class Pair(msgspec.Struct, frozen=True, dict=True):
    """Two readable tensors; `dtype` holds the values of both. If `readable` is false, `note` has the reason."""

    reference: Tensor
    test: Tensor
    dtype: torch.dtype
    failed_by: tuple[FailedBy, ...]
    metas: tuple[TensorMeta, TensorMeta]
    note: Remark | None = None
    readable: bool = True

    @cached_property
    def grid(self) -> Grid:
        """The blocks of both: leading dims are the rows."""
        columns = self.test.shape[-1] if self.test.dim() else 1
        return grid_of(self.test.numel() // columns, columns)

    @property
    def is_floating(self) -> bool:
        """Whether both are floating, so that ulps are counted."""
        return self.reference.dtype.is_floating_point and self.test.dtype.is_floating_point

    def unread(self, name: str) -> TensorDiff:
        """The diff without reading an element."""
        return TensorDiff(
            name=name,
            passed=not self.failed_by,
            failed_by=self.failed_by,
            reference=self.metas[0],
            test=self.metas[1],
            elements=0 if self.test.is_nested else self.test.numel(),
            note=self.note or "",
        )


def pair(reference: Tensor, test: Tensor) -> Pair:
    """Make both readable, and compare type, shape and dtype."""
    metas = meta(reference), meta(test)
    if problem := unreadable(reference) or unreadable(test):
        return Pair(reference, test, test.dtype, ("type",), metas, problem, readable=False)
    if reference.shape != test.shape:
        return Pair(reference, test, test.dtype, ("shape",), metas, readable=False)
    differ = reference.dtype != test.dtype
    reference, test = on_float64_device(dense(reference)), on_float64_device(dense(test))
    dtype = _promoted(reference.dtype, test.dtype) if differ else test.dtype
    note = None if metas[0].device == metas[1].device else Remark("compared on", str(test.device))
    return Pair(reference, test, dtype, ("dtype",) if differ else (), metas, note)


def meta(value: Tensor) -> TensorMeta:
    """The record of a tensor's dtype, shape, strides and device."""
    if value.is_nested:  # it has no shape
        return _meta(value.dtype, (), (), value.device)
    strided = value.layout == torch.strided
    return _meta(value.dtype, value.shape, value.stride() if strided else (), value.device)


@lru_cache(maxsize=256)
def _meta(dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...], device: torch.device) -> TensorMeta:
    return TensorMeta(str(dtype).removeprefix("torch."), tuple(shape), stride, str(device))


def unreadable(value: Tensor) -> Remark | None:
    """Why a tensor's elements cannot be read; None if they can."""
    if value.is_meta:
        return Remark("meta")
    if value.is_nested:
        return Remark("nested")
    if value.layout == torch.strided and (problem := no_memory(value)):
        return problem
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return Remark("packed", str(value.dtype)) if value.dtype in _PACKED else None
    known = value.dtype in _INTEGERS or bool(value.is_quantized)
    return None if known else Remark("no arithmetic", str(value.dtype))


_PACKED = {getattr(torch, "float4_e2m1fn_x2", None), getattr(torch, "bcomplex32", None)}
_INTEGERS = {torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64} | {
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
}


def dense(value: Tensor) -> Tensor:
    """A strided, unquantized tensor with its numbers in memory. What torch computes on reading (negated and
    conjugated views, zeros without memory, other layouts) is copied.
    """
    if value.requires_grad:
        value = value.detach()
    if type(value) is not Tensor:
        value = unwrapped(value)
    if value.is_quantized:
        return value.dequantize()
    value = value if value.layout == torch.strided else value.to_dense()
    if value.is_neg():
        value = value.resolve_neg()
    if not address(value) and value.numel():
        value = value.clone()
    return value.resolve_conj() if value.is_complex() else value


def _promoted(one: torch.dtype, other: torch.dtype) -> torch.dtype:
    """A dtype that holds the values of both; torch promotes float16 and int64 to float16, which ends at 65504."""
    floats = [each for each in (one, other) if each.is_floating_point or each.is_complex]
    if len(floats) == 1 and torch.bool not in (one, other):
        return torch.complex128 if floats[0].is_complex else torch.float64
    try:
        return torch.promote_types(one, other)
    except RuntimeError:  # small floats and unsigned integers have no common type in torch
        return torch.float64
