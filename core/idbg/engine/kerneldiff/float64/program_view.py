"""Show the program's Python code the dtypes and devices that its tensors have without float64.

A mask of `x.dtype`, a conversion to a narrow `weight.dtype`, a checkpoint that restores the random state of its
tensors' device behave as in the program. So random numbers are drawn in the program's own dtypes, with which dropout
drops other elements. Attention with dropout runs by the op that the program's dtypes select: for float64 torch would
choose plain math, which draws other numbers.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from idbg.engine.compat import comparing
from idbg.engine.compat.torch_types import tree_leaves, tree_map
from idbg.engine.kerneldiff.float64.copies import READS_MEMORY

_HALVES = (torch.float16, torch.bfloat16)
_Args = tuple[Any, ...]
_Named = dict[str, Any]


class TensorOrigins(Protocol):
    """What is known of the program's tensors."""

    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        """Its dtype in the program."""

    def device_of(self, tensor: Tensor) -> torch.device:
        """Its device in the program."""

    def note_dtype(self, tensor: Tensor, dtype: torch.dtype) -> None:
        """Record its dtype in the program."""

    def read(self, tensor: Tensor) -> None:
        """Its memory is read without an op."""


class ProgramView(TorchFunctionMode):
    """While active, tensors of float64 behave as in the program's own dtypes. Calls inside of torch's Python functions
    are not seen.
    """

    def __init__(self, origins: TensorOrigins) -> None:
        super().__init__()
        self.origins = origins

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: _Args = (), kwargs: Mapping[str, Any] | None = None
    ) -> object:
        given = dict(kwargs or {})
        if func in _OF_DEVICE:
            return _OF_DEVICE[func](self.origins.device_of(args[0]))
        if func == _DTYPE:
            return self._dtype(args[0])
        if func in READS_MEMORY and args:
            self.origins.read(args[0])
        if func is scaled_dot_product_attention:
            result = _dropout_attention(self.origins, *args, **given)
            if result is not None:
                return result
        wanted = self._converts_to(func, args, given)
        result = func(*args, **given) if wanted is None else self._converted(func, args, given, wanted)
        if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
            self._note_autocast(func, args, given, result)
        return result

    def _dtype(self, tensor: Tensor) -> torch.dtype:
        return self.origins.dtype_of(tensor) if tensor.dtype == torch.float64 else tensor.dtype

    def _converts_to(self, func: Callable[..., Any], args: _Args, given: _Named) -> torch.dtype | None:
        """The dtype to which the function converts a tensor of float64; None if it does something else."""
        if func not in _CONVERT or not isinstance(args[0], Tensor) or args[0].dtype != torch.float64:
            return None
        leaves = tree_leaves((args[1:], given))
        dtypes = (self._dtype(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return _CONVERT[func] or next((leaf for leaf in dtypes if isinstance(leaf, torch.dtype)), None)

    def _converted(self, func: Callable[..., Any], args: _Args, given: _Named, wanted: torch.dtype) -> Any:
        """The converted tensor, or the tensor itself if it has that dtype in the program."""
        value: Tensor = args[0]
        if func is not Tensor.to:
            func, args, given = Tensor.to, (value, wanted), {}
        if wanted == self.origins.dtype_of(value):
            args, given = tree_map(lambda leaf: torch.float64 if isinstance(leaf, torch.dtype) else leaf, (args, given))
            return func(*args, **given)
        result: Tensor = func(*args, **given)
        if result is value:  # the program converts to float64, and it is float64 already
            result = value.view_as(value)
        self.origins.note_dtype(result, wanted)
        return result

    def _note_autocast(self, func: Callable[..., Any], args: _Args, given: _Named, result: object) -> None:
        """Record autocast's dtype of the result, from the same call with fake tensors of the program's dtypes."""
        results = tree_leaves(result)
        if not any(isinstance(each, Tensor) and each.dtype == torch.float64 for each in results) or result is args[0]:
            return
        try:
            with comparing.no_modes(), comparing.without_memory(), torch.no_grad():
                there = tree_leaves(func(*tree_map(self._form, args), **tree_map(self._form, given)))
        except Exception:  # whatever it does with such tensors, the real ones have been computed
            return
        for held, form in zip(results, there, strict=False):
            if isinstance(held, Tensor) and isinstance(form, Tensor) and held.dtype == torch.float64:
                self.origins.note_dtype(held, form.dtype)

    def _form(self, value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        shape = tuple(value.shape), tuple(value.stride())
        return torch.empty_strided(*shape, dtype=self._dtype(value), device=self.origins.device_of(value))


def _dropout_attention(
    origins: TensorOrigins,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor | None:
    """Attention with dropout by the op that the program's own dtypes select; None where nothing is dropped."""
    kind = origins.device_of(query).type
    if not dropout_p or kind not in ("cpu", "cuda"):
        return None
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else origins.dtype_of(query)
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
    """By plain math, which torch computes in float32 where the program has fewer bits. The causal mask is created here:
    torch would create it in float64.
    """
    in_float32 = dtype in _HALVES and not comparing.attention_sums_halves()
    computed = torch.float32 if in_float32 else dtype
    query, key, value = (each.to(computed) for each in tensors)
    if is_causal:
        mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    return scaled_dot_product_attention(query, key, value, _added(mask, computed), dropout_p, **rest).to(dtype)


def _added(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A boolean mask as one that is added to the scores."""
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


def _getter(name: str) -> Callable[..., object]:
    return cast("Callable[..., object]", getattr(Tensor, name).__get__)


def _is_on(kind: str, device: torch.device) -> bool:
    return device.type == kind


_DTYPE = _getter("dtype")
_OF_DEVICE: dict[Callable[..., object], Callable[[torch.device], object]] = {
    _getter("device"): lambda device: device,
    Tensor.get_device: lambda device: -1 if device.index is None else device.index,
    **{_getter(f"is_{kind}"): partial(_is_on, kind) for kind in ("cpu", "cuda", "mps", "xpu")},
}
_CONVERT: dict[Callable[..., object], torch.dtype | None] = {
    Tensor.float: torch.float32,
    Tensor.half: torch.float16,
    Tensor.bfloat16: torch.bfloat16,
    Tensor.double: torch.float64,
    Tensor.to: None,
    Tensor.type_as: None,
}
