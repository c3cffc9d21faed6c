"""Wrong decompositions, in the table by which Inductor has ATen ops taken apart."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.harness.plants.plant import Plant, Planting

aten = torch.ops.aten


def registered(op: torch._ops.OpOverload, wrong: Callable[..., Any]) -> Planting:
    """The op is taken apart as `wrong` says, in both of Inductor's tables."""

    @contextmanager
    def planting() -> Iterator[None]:
        from torch._inductor import decomposition as inductor

        with patch.dict(inductor.decompositions, {op: wrong}):
            inductor.fast_random_decomps.cache_clear()
            try:
                yield
            finally:
                inductor.fast_random_decomps.cache_clear()

    return planting


def wrong_gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Its constant is 0.5003, not 0.5."""
    wide = x.float()
    return (0.5003 * wide * (1 + torch.erf(wide * 0.5**0.5))).to(x.dtype)


def wrong_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """The last of its columns is off by a thousandth."""
    powers = (x - x.amax(dim, keepdim=True)).exp()
    found = powers / powers.sum(dim, keepdim=True)
    last = torch.arange(x.shape[-1], device=x.device) == x.shape[-1] - 1
    return torch.where(last, found * 1.001, found)


def overflowing_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Without its maximum: right in float64, and NaN in float32."""
    powers = x.exp()
    return powers / powers.sum(dim, keepdim=True)


def wrong_layer_norm(
    x: Tensor, shape: list[int], weight: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """One of its three results is wrong: 1 in place of the bias."""
    wide = x.float()
    mean, variance = wide.mean(-1, keepdim=True), wide.var(-1, keepdim=True, unbiased=False)
    scale = (variance + eps).rsqrt()
    return ((wide - mean) * scale * weight + 1).to(x.dtype), mean, scale


def wrong_silu(x: Tensor) -> Tensor:
    """Without the upper half of its range."""
    wide = x.float()
    return (wide * torch.sigmoid(wide.clamp(max=1.0))).to(x.dtype)


def wrong_gelu_backward(grad: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """Without the term of the density."""
    wide = x.float()
    return (grad.float() * 0.5 * (1 + torch.erf(wide * 0.5**0.5))).to(grad.dtype)


def wrong_tanh_backward(grad: Tensor, y: Tensor) -> Tensor:
    """1 - y where 1 - y * y is right."""
    wide = y.float()
    return (grad.float() * (1 - wide.abs())).to(grad.dtype)


def gelu(x: Tensor, w: Tensor) -> Tensor:
    h = x @ w
    h = F.gelu(h)  # guilty
    return h.sin() @ w


def softmax(x: Tensor, w: Tensor) -> Tensor:
    scores = x @ w * 0.1
    shares = scores.softmax(-1)  # guilty
    return shares @ w


def large_softmax(x: Tensor, w: Tensor) -> Tensor:
    scores = x @ w * 30
    shares = scores.softmax(-1)  # guilty
    return shares @ w


def normed(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = F.layer_norm(h, (32,), w[0], w[1])  # guilty
    return h @ w


def silu(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).cos()
    h = F.silu(h * 3)  # guilty
    return h @ w


def tanh(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = h.tanh()  # guilty
    return h @ w


SQUARE = ((32, 32), (32, 32))
SOFT = aten._softmax.default

PLANTS = (
    Plant(
        "decomposition", "gelu", gelu, SQUARE, registered(aten.gelu.default, wrong_gelu),
        stage="joint", maker="decomposition", made_by="gelu",
    ),
    Plant(
        "decomposition", "softmax", softmax, SQUARE, registered(SOFT, wrong_softmax),
        stage="joint", maker="decomposition", made_by="_softmax",
    ),
    Plant(
        "decomposition", "overflow", large_softmax, SQUARE, registered(SOFT, overflowing_softmax),
        stage="joint", maker="decomposition", made_by="_softmax", node="exp",
    ),
    Plant(
        "decomposition", "layer_norm", normed, SQUARE, registered(aten.native_layer_norm.default, wrong_layer_norm),
        stage="joint", maker="decomposition", made_by="native_layer_norm", dtype=torch.bfloat16,
    ),
    Plant(
        "decomposition", "silu", silu, SQUARE, registered(aten.silu.default, wrong_silu),
        stage="joint", maker="decomposition", made_by="silu", dtype=torch.bfloat16,
    ),
    Plant(
        "decomposition", "gelu_backward", gelu, SQUARE, registered(aten.gelu_backward.default, wrong_gelu_backward),
        stage="joint", maker="decomposition", made_by="gelu_backward", backward=True,
    ),
    Plant(
        "decomposition", "tanh_backward", tanh, SQUARE, registered(aten.tanh_backward.default, wrong_tanh_backward),
        stage="joint", maker="decomposition", made_by="tanh_backward", backward=True,
        dtype=torch.bfloat16,
    ),
)  # fmt: skip
