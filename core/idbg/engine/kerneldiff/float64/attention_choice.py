"""Which fused op does attention with dropout run in the program? In float64 torch would choose plain math, which draws
other random numbers.
"""

from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from idbg.engine.compat import comparing

_HALVES = (torch.float16, torch.bfloat16)


class _Held(Protocol):
    def dtype_of(self, tensor: Tensor) -> torch.dtype: ...

    def device_of(self, tensor: Tensor) -> torch.device: ...


def attended(
    held: _Held,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    """Attention with dropout by the op that the program's own dtypes lead to; None where nothing is dropped."""
    kind = held.device_of(query).type
    if not dropout_p or kind not in ("cpu", "cuda"):
        return None
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else held.dtype_of(query)
    rest: dict[str, Any] = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    fused = _fused(dtype, (query, key, value), attn_mask, dropout_p, **rest) if query.is_cuda else ""
    if not fused:
        return _plain(dtype, (query, key, value), attn_mask, dropout_p, **rest)
    op = getattr(torch.ops.aten, f"_scaled_dot_product_{fused}_attention")
    if fused == "flash":
        return cast("Tensor", op(query, key, value, dropout_p, is_causal, scale=scale)[0])
    attn_mask = _added(attn_mask, query.dtype)
    return cast("Tensor", op(query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale)[0])


def _plain(
    dtype: torch.dtype,
    tensors: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    **rest: Any,
) -> Tensor:
    """By plain math, which torch computes in float32 where the program has fewer bits. The mask that it would make is
    made here: below it would be one of float64 in the program's eyes too.
    """
    in_float32 = dtype in _HALVES and not comparing.attention_sums_halves()
    computed = torch.float32 if in_float32 else dtype
    query, key, value = (each.to(computed) for each in tensors)
    if is_causal:
        mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    return scaled_dot_product_attention(query, key, value, _added(mask, computed), dropout_p, **rest).to(dtype)


def _added(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A mask that is added to the scores in the place of one that says what is looked at."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -torch.inf)


def _fused(
    dtype: torch.dtype, tensors: tuple[Tensor, ...], mask: Tensor | None, dropout_p: float, **rest: object
) -> str:
    narrow = (_as_there(each, dtype) for each in tensors)
    mask = mask if mask is None or mask.dtype == torch.bool else _as_there(mask, dtype)
    return comparing.attention_kind(*narrow, mask, dropout_p, **rest)


def _as_there(value: Tensor, dtype: torch.dtype) -> Tensor:
    with comparing.no_modes():
        recorded = value.requires_grad and torch.is_grad_enabled()
        return value.detach().to(dtype).requires_grad_(recorded)
