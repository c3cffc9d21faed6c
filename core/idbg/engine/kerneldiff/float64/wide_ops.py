"""Compute ops in float64 for which torch has no float64 kernel.

Some are written out here after their documentation; others have a decomposition in torch.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.float64 import attention
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs

UNSCALES = "_amp_foreach_non_finite_check_and_unscale_"
_FLOAT32_MAX = torch.finfo(torch.float32).max


def in_float64(func: Callable[..., object], args: Args, kwargs: Kwargs, was: torch.dtype = torch.float64) -> object:
    """Run the op, or a function in its place, on float64 arguments; `was` is the result's dtype in the program. Raises
    what it raises if it cannot be computed another way.
    """
    name = fx.op_name(func)
    if name in ("nan_to_num", "nan_to_num_") and was.is_floating_point:
        args, kwargs = _with_limits(args, kwargs, torch.finfo(was))
    if attention.is_fused(func):
        return attention.in_plain_math(func, args, kwargs)
    try:
        return func(*args, **kwargs)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        instead = _INSTEAD.get(name) or comparing.decomposition(func)
        if instead is None:
            raise
        try:
            return instead(*args, **kwargs)
        except (RuntimeError, NotImplementedError, ValueError, TypeError):
            raise error from None


def _with_limits(args: Args, kwargs: Kwargs, limits: torch.finfo) -> tuple[Args, Kwargs]:
    """The arguments of nan_to_num with the values for infinities, whose defaults are the limits of the dtype."""
    named = {**dict(zip(("self", "nan", "posinf", "neginf"), args, strict=False)), **kwargs}
    for name, limit in (("posinf", limits.max), ("neginf", limits.min)):
        named[name] = limit if named.get(name) is None else named[name]
    return (named.pop("self"),), named


def _grouped_mm(
    one: Tensor, other: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: object = None
) -> Tensor:
    """Each group's product: of rows of `one`, of columns of `other`, or, where both are matrices, of what is summed."""
    if offs is None:
        return one @ other
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    groups = list(zip(range(len(ends)), starts, ends, strict=True))
    if one.dim() == 2 and other.dim() == 2:
        return torch.stack([one[:, start:end] @ other[start:end] for _, start, end in groups])
    if one.dim() == 2:
        rows = [one[start:end] @ other[at] for at, start, end in groups]
        return _filled(torch.cat(rows), (one.shape[0], other.shape[-1]))
    columns = [one[at] @ other[:, start:end] for at, start, end in groups]
    return _filled(torch.cat(columns, dim=1), (one.shape[1], other.shape[1]))


def _filled(product: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Pads a product with zeros behind the last group, where torch leaves memory uninitialized."""
    result = product.new_zeros(shape)
    result[: product.shape[0], : product.shape[1]] = product
    return result


def _unscaled(gradients: list[Tensor], found_inf: Tensor, inverse: Tensor) -> None:
    """What a GradScaler does to gradients: found_inf is 1 where one is not finite."""
    for gradient in gradients:
        if not bool(gradient.isfinite().all()):
            found_inf.fill_(1.0)
        gradient.mul_(inverse)


def _scale_updated(
    scale: Tensor, grown: Tensor, found_inf: Tensor, growth: float, backoff: float, every: int
) -> Tensor:
    """Update a GradScaler's scale: down after an infinity, up after `every` steps without one."""
    if bool(found_inf):
        scale.mul_(backoff)
        grown.zero_()
        return scale
    grown.add_(1)
    if int(grown) == every:
        larger = scale * growth
        scale.copy_(larger if bool(larger <= _FLOAT32_MAX) else scale)
        grown.zero_()
    return scale


_INSTEAD: dict[str, Callable[..., object]] = {
    "_grouped_mm": _grouped_mm,
    UNSCALES: _unscaled,
    "_amp_update_scale_": _scale_updated,
}
