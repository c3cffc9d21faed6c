"""Recreate a tensor whose values are confidential, from its shape and rounded statistics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from idbg.engine.repro.draft import Draft, Input, is_contiguous

WITHOUT_DATA = (
    "made from shapes and rounded statistics: none of the program's is here, but for numbers and strings of its code"
)
_FEW = 8  # elements: their mean or largest would be nearly themselves, so only a power of ten is written


def without_data(draft: Draft, tensors: Mapping[str, torch.Tensor]) -> Draft:
    """The draft with a recipe for each of its stored arguments; `tensors` are their memories, as they would be kept."""
    arguments = tuple(_recipe_for(each, tensors[each.name]) if each.is_stored else each for each in draft.arguments)
    return replace(draft, arguments=arguments, values=WITHOUT_DATA)


def _recipe_for(given: Input, kept: torch.Tensor) -> Input:
    memory = kept.view(getattr(torch, given.dtype.removeprefix("torch."))) if given.dtype else kept
    contiguous = is_contiguous(given.shape, given.stride)
    text = recipe(memory, given.shape if contiguous else (memory.numel(),))
    text += f'.to("{given.device}")' if given.device not in ("", "cpu") else ""
    return replace(given, recipe=text if contiguous else f"{text}.as_strided({given.shape}, {given.stride})", dtype="")


def recipe(values: torch.Tensor, shape: Sequence[int]) -> str:
    """Python that makes a tensor of this shape and of the dtype of `values`, alike to them by its statistics: mean and
    deviation, or range; shares of zeros, of NaN and infinities, and of True.
    """
    sizes = ", ".join(map(str, shape)) or "()"
    dtype = str(values.dtype)
    if not values.numel():
        return f"torch.zeros({sizes}, dtype={dtype})"
    if values.dtype == torch.bool:
        return f"(torch.rand({sizes}) < {_rounded(values.double().mean().item())})"
    if values.dtype.is_complex:
        scale = _rounded(values.to(torch.complex128).abs().nan_to_num(0, 0).square().mean().sqrt().item())
        return f"(torch.randn({sizes}, dtype=torch.complex64) * {scale}).to({dtype})"
    if not values.dtype.is_floating_point:
        return _of_integers(values, sizes)
    return _of_floats(values.double(), sizes, dtype)


def _of_integers(values: torch.Tensor, sizes: str) -> str:
    whole = values.to(torch.int64)
    low, high = int(whole.min().item()), int(whole.max().item())
    if values.numel() < _FEW or not -_FEW < low <= high < 1 << 20:
        low, high = -_power(-low) if low < 0 else 0, _power(high)
    shape = sizes if sizes == "()" else f"({sizes},)"
    return f"torch.randint({low}, {max(high, low) + 1}, {shape}).to({values.dtype})"


def _of_floats(values: torch.Tensor, sizes: str, dtype: str) -> str:
    finite = values[values.isfinite()]
    held = finite[finite != 0]
    if values.numel() < _FEW or held.numel() < 2:
        scale = 10.0 ** math.floor(math.log10(held.abs().max().item())) if held.numel() else 0.0
        text = f"torch.randn({sizes}) * {scale:g}"
    else:
        low, high = _rounded(held.min().item(), down=True), _rounded(held.max().item(), down=False)
        text = f"(torch.randn({sizes}) * {_rounded(held.std().item())} + {_rounded(held.mean().item())})"
        text += f".clamp({low}, {high})"
        zeros = 1 - held.numel() / max(finite.numel(), 1)
        text += f" * (torch.rand({sizes}) >= {_rounded(zeros)})" if zeros > 0 else ""
    text = f"({text})"
    for name, bad in (("nan", values.isnan()), ("inf", values == math.inf), ("-inf", values == -math.inf)):
        if share := bad.double().mean().item():
            text += f'.masked_fill(torch.rand({sizes}) < {_rounded(share)}, float("{name}"))'
    return text if dtype == "torch.float32" else f"{text}.to({dtype})"


def _power(value: int) -> int:
    """The power of two above."""
    return 1 << max(value, 1).bit_length()


def _rounded(value: float, *, down: bool | None = None) -> str:
    """Two digits of a number; `down` or up, where it is a bound."""
    if not value or down is None:
        return f"{value:.2g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return f"{(math.floor(value / unit) if down else math.ceil(value / unit)) * unit:.2g}"
