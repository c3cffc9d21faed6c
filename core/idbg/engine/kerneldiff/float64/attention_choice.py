"""Which fused op does attention with dropout run in the program? In float64 torch would choose plain math, which draws
other random numbers.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from idbg.engine.compat import comparing


class AttentionAsThere(TorchFunctionMode):
    """While it is in force, attention with dropout runs the op that the program's own dtypes lead to. `was` says which
    dtype a tensor of float64 has in the program.
    """

    def __init__(self, was: Callable[[Tensor], torch.dtype]) -> None:
        super().__init__()
        self.was = was

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if func is scaled_dot_product_attention and (result := self._attended(*args, **given)) is not None:
            return result
        return func(*args, **given)

    def _attended(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor | None:
        """None where no fused op is chosen, or nothing is dropped."""
        if not dropout_p or query.device.type != "cuda":
            return None
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else self.was(query)
        mask = attn_mask if attn_mask is None or attn_mask.dtype == torch.bool else self._as_there(attn_mask, dtype)
        narrow = (self._as_there(each, dtype) for each in (query, key, value))
        kind = comparing.attention_kind(*narrow, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if not kind:
            return None
        op = getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention")
        if kind == "flash":
            return cast("Tensor", op(query, key, value, dropout_p, is_causal, scale=scale)[0])
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
        return cast("Tensor", op(query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale)[0])

    def _as_there(self, value: Tensor, dtype: torch.dtype) -> Tensor:
        with comparing.no_modes():
            recorded = value.requires_grad and torch.is_grad_enabled()
            return value.detach().to(dtype).requires_grad_(recorded)
