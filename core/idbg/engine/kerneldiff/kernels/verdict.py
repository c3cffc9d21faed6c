"""Judge the value of a buffer: whether it is wrong or only rounded.

The error of a value is its RMSE over the RMS of the reference; for integers and booleans, the root of the share of
elements that differ. The largest error of one element, over the same RMS, is judged by the same rule, so that a single
wrong element is found.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.tensors.allowance import (
    GIVEN_K,
    KERNEL_K,
    KernelAllowance,
    Size,
    epsilon,
    is_rounding_alone,
)
from idbg.engine.kerneldiff.tensors.float64_device import is_moved, on_float64_device

_MAX_EXCUSED = 1e-4  # of the elements
_FLOAT32 = torch.finfo(torch.float32).eps
_NORMAL = 1e-30  # an RMS against which half an ulp of float32's smallest numbers is below its rounding
_NEAR = 8.0  # times what a rounding moves a number by: two that are nearer to each other than that may change places
_FLIP = 64.0  # times what rounding moves most elements by: this one is on the other side of a step


@dataclass(frozen=True)
class BufferVerdict:
    """The errors of the value and of eager, and how far the error is above what is allowed: above 1 is bad."""

    error: Size
    eager: Size
    excess: float


Resample = Callable[[float], Iterable[Tensor]]
"""Eager's values of the launch's nodes with its rounding errors perturbed, so many times as much. Costs a few runs."""


def judge_launch(
    value: Tensor, reference: ReferenceValue, resample: Resample, *, k: float = GIVEN_K, steps: bool = False
) -> BufferVerdict:
    """Judge what a launch wrote, by the `reference` for its actual inputs.

    A value that is too far off is judged again, with what `resample` (resampled rounding) gives. `steps`: there were
    comparisons or roundings on the way, which turn the smallest error of a few elements into a large one.
    """
    value, reference = _where_float64_is(value, reference)
    exact, dtype = reference.exact, reference.own.dtype
    if not (exact.dtype.is_floating_point or exact.dtype.is_complex):
        return _judge_whole(value, exact, reference.own, resample)
    sides = _compare_sides(exact, reference.own, value)
    known = (sides.eager, _rounded_once(exact, dtype, sides.scale))
    excess = _excess(sides.error, _allowed_given(exact, dtype, sides.scale, known, k))
    if excess <= 1:
        return BufferVerdict(sides.error, sides.eager, excess)
    again = _judged_again(sides, dtype, resample(1.0), k, steps)
    return replace(again, excess=min(excess, again.excess))


def _judged_again(
    sides: "_Sides", dtype: torch.dtype, resample: Iterable[Tensor], k: float, steps: bool
) -> BufferVerdict:
    """The verdict with the spread of eager's resampled values allowed."""
    exact, value = sides.exact, sides.value.to(sides.exact.dtype)
    spread = torch.zeros_like(exact.abs())
    for other in map(on_float64_device, resample):
        spread = torch.maximum(spread, (other.to(exact.dtype) - exact).abs().nan_to_num(0, 0, 0))
    if steps:  # an element that falls on either side of a step is right on both
        value = torch.where((value - exact).abs() <= k * spread, exact, value)
        moved = spread[spread > 0]
        spread = spread.masked_fill(spread > _FLIP * (float(moved.median()) if moved.numel() else 0.0), 0)
    size = rms(spread)
    if is_rounding_alone(sides.scale, size):  # zero, which eager has by luck
        sides = _beside(exact, sides.own, sides.value, size)
    scale = sides.scale
    if scale == 0:
        return BufferVerdict(sides.error, sides.eager, math.inf)
    noise = measured(torch.zeros_like(spread), spread, scale)
    known = (sides.eager, _rounded_once(exact, dtype, scale), noise)
    excess = _excess(measured(exact, value, scale), _allowed_given(exact, dtype, scale, known, k))
    return BufferVerdict(sides.error, sides.eager, excess)


def _judge_whole(value: Tensor, exact: Tensor, own: Tensor, resample: Resample) -> BufferVerdict:
    """Integers and booleans: each must equal float64's or eager's, unless rounding may change it."""
    wrong = (value != exact) & (value != own) & (own == exact)
    for other in map(on_float64_device, resample(_NEAR) if bool(wrong.any()) else ()):
        wrong &= other == exact
    return BufferVerdict(measured(exact, value), measured(exact, own), math.inf if bool(wrong.any()) else 0.0)


def _rounded_once(exact: Tensor, dtype: torch.dtype, scale: float) -> Size:
    """The error of the exact value, rounded to a dtype that kernels do not compute in. Of one that they do it is at
    most half an ulp, which is always allowed; not where numbers are so small that they have fewer bits.
    """
    is_float = dtype.is_floating_point or dtype.is_complex
    if epsilon(dtype) < _FLOAT32 or (is_float and epsilon(dtype) == _FLOAT32 and scale > _NORMAL):
        return Size()
    rounded = exact.to(dtype).to(exact.dtype)
    return measured(exact, torch.where(rounded.isfinite(), rounded, exact), scale)


def _allowed_given(exact: Tensor, dtype: torch.dtype, scale: float, known: Iterable[Size], k: float) -> Size:
    worst = [Size(), *known]
    computed_in = torch.float32 if epsilon(dtype) > _FLOAT32 else dtype
    allowance = KernelAllowance(computed_in, exact.numel(), _largest(exact) / scale if scale else 1.0, k)
    return allowance.of(Size(max(each.rmse for each in worst), max(each.maximum for each in worst)))


def judge_buffer(
    value: Tensor, reference: ReferenceValue, inputs: Iterable[Size], *, k: float = KERNEL_K, steps: bool = False
) -> BufferVerdict:
    """Judge a value that was computed from inputs with these errors; `steps` as above."""
    value, reference = _where_float64_is(value, reference)
    exact, dtype = reference.exact, reference.own.dtype
    sides = _compare_sides(exact, reference.own, value)
    scale = sides.scale
    worst = [sides.eager, *inputs]
    floats = dtype.is_floating_point or dtype.is_complex
    allowance = KernelAllowance(dtype, exact.numel(), _largest(exact) / scale if scale and floats else 1.0, k)
    allowed = allowance.of(Size(max(e.rmse for e in worst), max(e.maximum for e in worst)))
    excess = _excess(sides.error, allowed)
    if excess > 1 and steps and exact.dtype.is_floating_point:
        share = min(_MAX_EXCUSED, 10 * max(allowed.rmse, epsilon(dtype)))
        left = _without_worst(exact, sides.value, int(share * exact.numel()), scale)
        excess = min(excess, _excess(left, allowed))
    return BufferVerdict(sides.error, sides.eager, excess)


def errors_of(value: Tensor, reference: ReferenceValue) -> tuple[Size, Size]:
    """The errors of the value and of eager."""
    value, reference = _where_float64_is(value, reference)
    sides = _compare_sides(reference.exact, reference.own, value)
    return sides.error, sides.eager


def _where_float64_is(value: Tensor, reference: ReferenceValue) -> tuple[Tensor, ReferenceValue]:
    """Both on a device that has float64."""
    if not is_moved(value):
        return value, reference
    return on_float64_device(value), ReferenceValue(reference.exact, on_float64_device(reference.own))


@dataclass(frozen=True)
class _Sides:
    """A value and eager's beside the exact one, without elements that cannot be judged; both errors, over `scale`."""

    exact: Tensor
    own: Tensor
    value: Tensor
    scale: float
    error: Size
    eager: Size


def _compare_sides(exact: Tensor, own: Tensor, value: Tensor) -> _Sides:
    scale = rms(exact)
    eager = measured(exact, own, scale)
    if is_rounding_alone(1.0, eager.rmse):
        scale = size_of(exact, own)
        eager = measured(exact, own, scale)
    if math.isinf(eager.rmse):
        own, value = _where_eager_is_like_float64(exact, own, value)
        eager = measured(exact, own, scale)
    return _beside(exact, own, value, scale, eager)


def _beside(exact: Tensor, own: Tensor, value: Tensor, scale: float, eager: Size | None = None) -> _Sides:
    return _Sides(exact, own, value, scale, measured(exact, value, scale), eager or measured(exact, own, scale))


def _where_eager_is_like_float64(exact: Tensor, own: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Eager's value and the kernel's, without the elements at which eager has overflowed.

    A kernel with more precision is finite there, and is compared with float64; one that overflows as eager does is as
    wrong as eager, and one that gives a number where float64 has none cannot be judged.
    """
    wide, actual = own.to(exact.dtype), value.to(exact.dtype)
    same = (wide == exact) | (wide.isnan() & exact.isnan())
    lost = ~same & ~(wide.isfinite() & exact.isfinite())
    unjudged = lost & ~(exact.isfinite() & actual.isfinite())
    return torch.where(lost, exact, wide), torch.where(unjudged, exact, actual)


def measured(reference: Tensor, value: Tensor, scale: float | None = None) -> Size:
    """The error of a value over `scale`, or over the reference's RMS; infinite where only one of both is finite."""
    if reference.numel() == 0:
        return Size()
    if not (reference.dtype.is_floating_point or reference.dtype.is_complex):
        differing = int((reference != value).sum())
        return Size(math.sqrt(differing / reference.numel()), float(differing > 0))
    wide = value.to(reference.dtype)
    difference = wide - reference
    scale = rms(reference) if scale is None else scale
    root, largest = _root_and_largest(difference)
    if not (root < math.inf and largest < math.inf):
        same = (wide == reference) | (wide.isnan() & reference.isnan())
        difference = difference.abs().masked_fill_(same, 0)
        root, largest = _root_and_largest(difference)
    if not root < math.inf and largest < math.inf:
        root = _scaled_rms(difference, largest, difference.numel())
    figures = (root, largest)
    return Size(
        *(0.0 if figure == 0 else math.inf if not figure < math.inf else _over(figure, scale) for figure in figures)
    )


def size_of(exact: Tensor, own: Tensor) -> float:
    """The RMS of a value, to which its errors are relative: of one that is zero in mathematics what rounding leaves
    of it in eager.
    """
    size, rounding = rms(exact), rms(own)
    return rounding if is_rounding_alone(size, rounding) else size


def rms(tensor: Tensor) -> float:
    """The root mean square of its finite elements; 0 if there are none."""
    if not tensor.numel():
        return 0.0
    size = tensor if tensor.dtype.is_complex else tensor.to(torch.float64, copy=False)
    if (root := float(torch.linalg.vector_norm(size)) / math.sqrt(size.numel())) < math.inf:
        return root
    size = size.abs()
    finite = size.isfinite()
    count = int(finite.sum())
    size = size.masked_fill(~finite, 0)
    root = math.sqrt(float(size.square().sum()) / count) if count else 0.0
    return root if root < math.inf else _scaled_rms(size, float(size.max()), count)


def _root_and_largest(difference: Tensor) -> tuple[float, float]:
    """The RMS and the largest magnitude, in two passes and one wait for the device; NaN where an element is NaN."""
    norms = (torch.linalg.vector_norm(difference, order) for order in (2, math.inf))
    length, largest = torch.stack([*norms]).tolist()
    return length / math.sqrt(difference.numel()), largest


def _scaled_rms(size: Tensor, largest: float, count: int) -> float:
    """The same for magnitudes whose squares overflow."""
    return largest * math.sqrt(float((size / largest).square().sum()) / count)


def _over(figure: float, scale: float) -> float:
    return figure / scale if scale > 0 else math.inf


def _largest(exact: Tensor) -> float:
    if not exact.numel():
        return 0.0
    largest = float(torch.linalg.vector_norm(exact, math.inf))
    return largest if largest < math.inf else float(exact.abs().nan_to_num(0, 0, 0).max())


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
