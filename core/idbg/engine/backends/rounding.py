"""Round tensors to the number format of the hardware.

| format | what is done |
|---|---|
| bfloat16, float16 | IEEE 754: to nearest, ties to even; too large is inf |
| tf32 | float32's exponent, 10 explicit mantissa bits, to nearest, ties to even |
| float8 | to nearest, ties to even; too large and inf are the largest number, NaN is NaN |
| int8 | to nearest, ties to even; from -127 to 127, no -0; NaN stays, so that it is seen |

TF32's width: https://blogs.nvidia.com/blog/tensorfloat-32-precision-format (how a GPU rounds to it is left open there).
Float8: the OCP's OFP8 1.0, in its saturating mode
(https://www.opencompute.org/documents/ocp-8-bit-floating-point-specification-ofp8-revision-1-0-2023-12-01-pdf-1);
the "fnuz" formats are treated alike. A scaled value is q * scale, with the division and the product in float64, and q
in the format. Denormals are flushed after rounding: what rounds up to the smallest normal stays.
"""

from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from idbg.accelerators.model import Numerics

_INT8_LARGEST = 127.0  # symmetric: -128 has no opposite
_TF32_DROPPED = 13  # of float32's 23 mantissa bits
_TF32_EPS = 2.0**-10


def is_float(value: object) -> TypeGuard[Tensor]:
    """Whether it is a plain tensor of real floating numbers; only these are rounded.

    One of 8 bits or fewer is not: the program itself has brought it into a hardware's format.
    """
    if not isinstance(value, Tensor) or value.layout != torch.strided:
        return False
    return value.is_floating_point() and value.itemsize > 1


@dataclass(frozen=True)
class HardwareRounding:
    """Rounds tensors to `numerics.compute`. Each keeps its dtype, size and strides; rounding twice changes nothing."""

    numerics: Numerics

    def value(self, tensor: Tensor) -> Tensor:
        """A value of the program. TF32 is a format of operands: all other values are float32 then."""
        return self._in(tensor, "float32" if self.numerics.compute == "tf32" else self.numerics.compute)

    def operand(self, tensor: Tensor) -> Tensor:
        """What a matmul or convolution multiplies."""
        return self._in(tensor, self.numerics.compute)

    def _in(self, tensor: Tensor, compute: str) -> Tensor:
        """Rounded with the very strides, which the graph's views count on. Inputs may have gaps, or overlap."""
        if tensor.numel() == 0 or (_holds(compute, tensor.dtype) and not self.numerics.flush_denormals):
            return tensor
        scale = self._scale(tensor)
        result = self._rounded(tensor, compute, scale)
        if result.stride() == tensor.stride():
            return result
        span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        memory = tensor.as_strided((span,), (1,))
        return self._rounded(memory, compute, scale).as_strided(tensor.shape, tensor.stride())

    def _rounded(self, tensor: Tensor, compute: str, scale: Tensor | float | None) -> Tensor:
        q = tensor if scale is None else tensor.double() / scale
        if compute == "int8":
            q = q.round().clamp(-_INT8_LARGEST, _INT8_LARGEST) + 0.0  # -0 + 0 is 0
        elif compute == "tf32":
            q = _tf32(q).to(q.dtype)
        elif not _holds(compute, q.dtype):
            q = narrowed(q, getattr(torch, compute))
        if self.numerics.flush_denormals:
            tiny = torch.finfo(_dtype(compute)).smallest_normal
            q = torch.where(q.abs() < tiny, torch.zeros_like(q).copysign(q), q)
        return (q if scale is None else q * scale).to(tensor.dtype)

    def _scale(self, tensor: Tensor) -> Tensor | float | None:
        """The tensor's largest magnitude over the format's, unless given. inf is left out: it is clamped anyway."""
        if self.numerics.scale != "tensor":
            return self.numerics.scale
        largest = _INT8_LARGEST if self.numerics.compute == "int8" else torch.finfo(_dtype(self.numerics.compute)).max
        magnitude = torch.where(tensor.isfinite(), tensor.abs(), 0).amax().double()
        return torch.where(magnitude > 0, magnitude / largest, 1.0)


def narrowed(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The nearest values that `dtype` has, in the tensor's own dtype. Float8 saturates."""
    if dtype.itemsize == 1:
        largest = torch.finfo(dtype).max
        tensor = tensor.clamp(-largest, largest)
    source = tensor if tensor.dtype != torch.float64 or dtype == torch.float32 else _odd_float32(tensor)
    return source.to(dtype).to(tensor.dtype)


def _odd_float32(tensor: Tensor) -> Tensor:
    """float64 as float32 with an odd last bit where it is inexact.

    torch goes through float32 to any smaller format, and rounding to nearest twice is not rounding once; from an odd
    number it is (Boldo and Melquiond, "When double rounding is odd").
    """
    nearest = tensor.to(torch.float32)
    beyond = nearest.double().abs() > tensor.abs()
    toward_zero = nearest.view(torch.int32) - beyond.to(torch.int32)
    inexact = (nearest.double() != tensor) & ~tensor.isnan()
    return torch.where(inexact, toward_zero | 1, nearest.view(torch.int32)).view(torch.float32)


def _tf32(tensor: Tensor) -> Tensor:
    single = _odd_float32(tensor) if tensor.dtype == torch.float64 else tensor.float()
    bits = single.view(torch.int32)
    half = (1 << (_TF32_DROPPED - 1)) - 1
    last = (bits >> _TF32_DROPPED) & 1
    rounded = (bits + half + last) & -(1 << _TF32_DROPPED)
    return torch.where(single.isfinite(), rounded.view(torch.float32), single)


def _holds(compute: str, dtype: torch.dtype) -> bool:
    """Whether the format has every value of the dtype, as it is and with no scale."""
    if compute == "int8":
        return False
    given, wanted = torch.finfo(dtype), torch.finfo(_dtype(compute))
    eps = _TF32_EPS if compute == "tf32" else wanted.eps
    return given.eps >= eps and given.max <= wanted.max and given.smallest_normal >= wanted.smallest_normal


def _dtype(compute: str) -> torch.dtype:
    """The torch dtype with the format's exponents."""
    return torch.float32 if compute == "tf32" else getattr(torch, compute)
