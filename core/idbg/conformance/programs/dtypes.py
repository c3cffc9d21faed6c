"""Dtypes"""

import torch
from torch import Tensor, nn

QUICK = ("bfloat16", "integers")


def _network(dtype: torch.dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 8))
    return model.to(dtype).eval(), (torch.randn(6, 32).to(dtype),)


def float16():
    """Linear, GELU and layer norm in float16."""
    return _network(torch.float16)


def bfloat16():
    """Linear, GELU and layer norm in bfloat16."""
    return _network(torch.bfloat16)


def float64():
    """Linear, GELU and layer norm in float64."""
    return _network(torch.float64)


def integers():
    """Arithmetic of int64 and int32: division that rounds down, remainders, shifts, bits."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x * 3 - 2**40, y // 3, y % 4, (y << 3) >> 1, y & 6, y ^ 5, torch.div(y, 3, rounding_mode="trunc")

    return model, (torch.arange(-9, 11), torch.arange(-9, 11, dtype=torch.int32))


def small_integers():
    """int8, uint8 and int16, which wrap around."""

    def model(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        return a * 3, b + 200, c * c, a.float() / 3, a.sum(), b.sum()

    values = torch.arange(-100, 100, 7)
    return model, (values.to(torch.int8), values.abs().to(torch.uint8), (values * 9).to(torch.int16))


def booleans():
    """Booleans as numbers: sums, products, comparisons, and indices."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x & y, x ^ y, x.sum(), x * 2.5, x.to(torch.int32) - 1, x < y, torch.logical_not(x)

    torch.manual_seed(0)
    return model, (torch.rand(5, 9) > 0.5, torch.rand(5, 9) > 0.5)


def complex_numbers():
    """complex64: products, absolute values, real and imaginary parts, a matrix product."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x * y.conj(), x.abs(), (x + 1j).real, x @ y.mT

    torch.manual_seed(0)
    return model, (torch.randn(4, 5, dtype=torch.complex64), torch.randn(4, 5, dtype=torch.complex64))


def promotion():
    """Operands of two dtypes, and Python numbers, which do not widen them."""

    def model(i: Tensor, h: Tensor, f: Tensor) -> tuple[Tensor, ...]:
        return i + h, h * f, i / 2, i * 2.0, h + 1, (i > 0) + f

    torch.manual_seed(0)
    return model, (torch.arange(6), torch.randn(6).to(torch.bfloat16), torch.randn(6))


def casts():
    """Casts: floats to integers toward zero, to bool, to bfloat16 and back, and views of the bits."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.to(torch.int32), x.bool(), x.to(torch.bfloat16).float(), x.view(torch.int32) + 1, x.double()

    return model, (torch.tensor([-2.7, -0.5, 0.0, 0.3, 1.0 / 3, 1e5]),)
