"""Is what a buffer holds wrong, or only rounded?

A value's error is its RMSE over the RMS of the reference; of integers and booleans, the root of the share of elements
that differ (what it is for 0 and 1). The largest error of one element, over the same RMS, is judged by the same rule:
so one wrong element of many shows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from idbg.engine.kerneldiff.kernels.references import Both
from idbg.engine.kerneldiff.tensors.allowance import KERNEL_K, KernelAllowance, Size, epsilon

_MAX_EXCUSED = 1e-4  # of the elements


@dataclass(frozen=True)
class BufferVerdict:
    """`excess` is how far the error is above what is allowed: above 1 is bad."""

    error: Size
    eager: Size
    excess: float


def judge_buffer(
    value: Tensor,
    reference: Both,
    inputs: Iterable[Size],
    *,
    k: float = KERNEL_K,
    steps: bool = False,
    rounding: float = 0.0,
) -> BufferVerdict:
    """`inputs` are the errors of what the value was computed from; `steps` says that there were comparisons or
    roundings on the way, which turn the smallest error of a few elements into a large one. `rounding` is the RMS of
    what rounding may do to a value whose terms cancel (rounding.py), which its own size does not tell.
    """
    exact, own, dtype = reference.exact, reference.own, reference.own.dtype
    # what is exactly zero has the size of its rounding errors
    scale = rms(exact) or rms(own) or rounding
    eager = measured(exact, own, scale)
    if math.isinf(eager.rmse):
        own, value = _where_eager_is_like_float64(exact, own, value)
        eager = measured(exact, own, scale)
    error = measured(exact, value, scale)
    worst = [eager, *inputs, _everywhere(rounding, exact, scale)]
    floats = dtype.is_floating_point or dtype.is_complex
    largest = _largest(exact) / scale if scale and floats else 1.0
    allowance = KernelAllowance(dtype, exact.numel(), largest, k)
    allowed = allowance.of(Size(max(e.rmse for e in worst), max(e.maximum for e in worst)))
    excess = _excess(error, allowed)
    if excess > 1 and steps and exact.dtype.is_floating_point:
        share = min(_MAX_EXCUSED, 10 * max(allowed.rmse, epsilon(dtype)))
        excess = min(excess, _excess(_without_worst(exact, value, int(share * exact.numel()), scale), allowed))
    return BufferVerdict(error, eager, excess)


def _where_eager_is_like_float64(exact: Tensor, own: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Eager's value and the kernel's without the places at which eager has overflowed, and is no truth.

    A kernel that keeps more digits on the way is finite there, and held against float64; one that overflows as eager
    does is as wrong as eager, and one that gives a number where float64 has none cannot be judged.
    """
    wide, given = own.to(exact.dtype), value.to(exact.dtype)
    same = (wide == exact) | (wide.isnan() & exact.isnan())
    lost = ~same & ~(wide.isfinite() & exact.isfinite())
    unjudged = lost & ~(exact.isfinite() & given.isfinite())
    return torch.where(lost, exact, wide), torch.where(unjudged, exact, given)


def _everywhere(rounding: float, exact: Tensor, scale: float) -> Size:
    """An error that is as large, for its size, in the largest element."""
    if not rounding or not scale:
        return Size()
    return Size(rounding / scale, rounding / scale * max(1.0, _largest(exact) / scale))


def measured(reference: Tensor, value: Tensor, scale: float | None = None) -> Size:
    """The error of a value over `scale`, or the reference's RMS; infinite where one is finite (or of its sign) and the
    other is not.
    """
    if reference.numel() == 0:
        return Size()
    if not (reference.dtype.is_floating_point or reference.dtype.is_complex):
        differing = int((reference != value).sum())
        return Size(math.sqrt(differing / reference.numel()), float(differing > 0))
    wide = value.to(reference.dtype)
    difference = (wide - reference).abs()
    same = (wide == reference) | (wide.isnan() & reference.isnan())
    difference = difference.masked_fill_(same, 0)
    scale = rms(reference) if scale is None else scale
    figures = torch.stack([difference.square().mean().sqrt(), difference.max()]).tolist()
    return Size(
        *(0.0 if figure == 0 else math.inf if not figure < math.inf else _over(figure, scale) for figure in figures)
    )


def rms(tensor: Tensor) -> float:
    """The root of the mean square of its finite elements; 0 where there are none."""
    size = tensor.to(torch.float64, copy=False).abs() if not tensor.dtype.is_complex else tensor.abs()
    finite = size.isfinite()
    count = int(finite.sum())
    return math.sqrt(float(size.masked_fill(~finite, 0).square().sum()) / count) if count else 0.0


def _over(figure: float, scale: float) -> float:
    return figure / scale if scale > 0 else math.inf


def _largest(exact: Tensor) -> float:
    return float(exact.abs().nan_to_num(0, 0, 0).max()) if exact.numel() else 0.0


def _excess(error: Size, allowed: Size) -> float:
    return max(_ratio(error.rmse, allowed.rmse), _ratio(error.maximum, allowed.maximum))


def _ratio(error: float, allowed: float) -> float:
    if error == 0 or math.isinf(allowed):
        return 0.0
    return error / allowed if allowed else math.inf


def _without_worst(exact: Tensor, value: Tensor, count: int, scale: float) -> Size:
    """The error without this many of the worst elements."""
    if count == 0:
        return measured(exact, value, scale)
    difference = (value.to(exact.dtype) - exact).abs().flatten().nan_to_num(math.inf)
    worst = difference.topk(count).indices
    left = value.to(exact.dtype).flatten().index_copy(0, worst, exact.flatten()[worst])
    return measured(exact.flatten(), left, scale)
