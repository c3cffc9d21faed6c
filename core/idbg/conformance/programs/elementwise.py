"""Elementwise operations"""

import torch
from torch import Tensor
from torch.nn import functional as F

QUICK = ("arithmetic", "activations", "where")


def arithmetic():
    """Add, multiply, subtract and divide, with broadcasting and Python numbers."""

    def model(x: Tensor, row: Tensor) -> Tensor:
        return (x * 2 + row - 0.5) / (row.abs() + 1)

    torch.manual_seed(0)
    return model, (torch.randn(16, 33), torch.randn(33))


def activations():
    """Activations: relu, gelu, silu, sigmoid, tanh, softplus, leaky_relu."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return F.relu(x), F.gelu(x), F.silu(x), x.sigmoid(), x.tanh(), F.softplus(x), F.leaky_relu(x, 0.1)

    torch.manual_seed(0)
    return model, (torch.randn(8, 31) * 3,)


def functions():
    """Exponentials, logarithms, roots, powers and trigonometry."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        y = x.abs() + 0.1
        return x.exp(), y.log(), y.sqrt(), y.rsqrt(), y**1.5, x.sin() * x.cos(), x.atan(), x.erf(), y.log1p()

    torch.manual_seed(0)
    return model, (torch.randn(8, 31),)


def where():
    """Comparisons, logic on booleans, and where."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        greater = (x > y) & ~(y < 0)
        return torch.where(greater, x, y), greater | (x == y)

    torch.manual_seed(0)
    return model, (torch.randn(16, 17), torch.randn(16, 17))


def rounding():
    """Round half to even, floor, ceil, trunc, remainders of negative numbers, sign, clamp."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.round(), x.floor(), x.ceil(), x.trunc(), x % 1.5, torch.fmod(x, 1.5), x.sign(), x.clamp(-1, 2)

    return model, (torch.tensor([-3.0, -2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 3.49]),)


def not_finite():
    """NaN and infinities through maximum, clamp, comparisons and nan_to_num."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return torch.maximum(x, -x), x.clamp(min=0), x.isnan(), x.isinf(), x > 0, x.nan_to_num(7.0, 8.0, -9.0)

    return model, (torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0]),)
