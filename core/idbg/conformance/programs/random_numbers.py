"""Random numbers

A compiler may draw other numbers than eager from the same seed. So each program returns what is the same for any draws.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

QUICK = ("dropout",)


def dropout():
    """Dropout: what it keeps is scaled, about three in five are kept, and two calls keep different elements."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        one, two = F.dropout(x, 0.4, training=True), F.dropout(x, 0.4, training=True)
        kept = one != 0
        share = kept.float().mean()
        return torch.where(kept, one, x / 0.6), (share > 0.5) & (share < 0.7), (kept != (two != 0)).any()

    torch.manual_seed(0)
    return model, (torch.rand(64, 64) + 0.5,)


def distributions():
    """rand, randn, randint and bernoulli: their range, mean and deviation."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        uniform, normal, whole = torch.rand_like(x), torch.randn(64, 64), torch.randint(2, 9, (999,))
        coin = torch.bernoulli(torch.full_like(x, 0.25))
        inside = (uniform >= 0).all() & (uniform < 1).all() & (whole >= 2).all() & (whole < 9).all()
        means = (uniform.mean() - 0.5).abs() < 0.05, normal.mean().abs() < 0.1, (coin.mean() - 0.25).abs() < 0.05
        return inside, *means, (normal.std() - 1).abs() < 0.1

    return model, (torch.zeros(64, 64),)


def permutation():
    """A random permutation: every row is there once, in another order."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        shuffled = x[torch.randperm(x.shape[0])]
        return shuffled.sort(0)[0] * 2, (shuffled != x).any()

    return model, (torch.arange(120.0).reshape(40, 3),)
