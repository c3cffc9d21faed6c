"""What do the program's Python lines see of a tensor that is held in float64, and perhaps on another device?

The dtype and the device that it has in the program: a mask of `x.dtype`, a conversion to `weight.dtype` where that is
narrow, a checkpoint that restores the random state of its tensors' device are what they are there. So random numbers
are drawn in the program's own dtypes: dropout drops other elements in each.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, cast

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.float64.attention_choice import attended

_Args = tuple[Any, ...]
_Named = dict[str, Any]


class Held(Protocol):
    """What is known of the tensors that are held."""

    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        """The dtype that it has in the program."""

    def device_of(self, tensor: Tensor) -> torch.device:
        """The device that it is on in the program."""

    def note_dtype(self, tensor: Tensor, dtype: torch.dtype) -> None:
        """Note the dtype that it has in the program."""


class ProgramView(TorchFunctionMode):
    """While it is in force, tensors of float64 say and do what they would in the program's own dtypes. Functions of
    torch that are written in Python run as they are: what they call is not seen.
    """

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: _Args = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        if func in _OF_DEVICE:
            return _OF_DEVICE[func](self.held.device_of(args[0]))
        if func == _DTYPE:
            return self._dtype(args[0])
        if func is scaled_dot_product_attention and (result := attended(self.held, *args, **given)) is not None:
            return result
        wanted = self._converts_to(func, args, given)
        result = func(*args, **given) if wanted is None else self._converted(func, args, given, wanted)
        if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
            self._note_autocast(func, args, given, result)
        return result

    def _dtype(self, tensor: Tensor) -> torch.dtype:
        return self.held.dtype_of(tensor) if tensor.dtype == torch.float64 else tensor.dtype

    def _converts_to(self, func: Callable[..., Any], args: _Args, given: _Named) -> torch.dtype | None:
        """The dtype that a tensor of float64 is converted to; None where the function does something else."""
        if func not in _CONVERT or not isinstance(args[0], Tensor) or args[0].dtype != torch.float64:
            return None
        leaves = tree_leaves((args[1:], given))
        asked = (self._dtype(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves)
        return _CONVERT[func] or next((leaf for leaf in asked if isinstance(leaf, torch.dtype)), None)

    def _converted(self, func: Callable[..., Any], args: _Args, given: _Named, wanted: torch.dtype) -> Any:
        """Converted where the program converts; the tensor itself where it has the dtype already."""
        value: Tensor = args[0]
        if func is not Tensor.to:
            func, args, given = Tensor.to, (value, wanted), {}
        if wanted == self.held.dtype_of(value):
            asked = tree_map(lambda leaf: torch.float64 if isinstance(leaf, torch.dtype) else leaf, (args, given))
            return func(*asked[0], **asked[1])
        result: Tensor = func(*args, **given)
        if result is value:  # float64 is asked for, and it is held so already
            result = value.view_as(value)
        self.held.note_dtype(result, wanted)
        return result

    def _note_autocast(self, func: Callable[..., Any], args: _Args, given: _Named, result: object) -> None:
        """What autocast makes of the result: torch says it of tensors without memory that have the program's dtypes."""
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
                self.held.note_dtype(held, form.dtype)

    def _form(self, value: object) -> object:
        if not isinstance(value, Tensor):
            return value
        shape = tuple(value.shape), tuple(value.stride())
        return torch.empty_strided(*shape, dtype=self._dtype(value), device=self.held.device_of(value))


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
