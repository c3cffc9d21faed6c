"""Reductions and scans"""

import torch
from torch import Tensor

QUICK = ("sums", "softmax")


def sums():
    """Sum, mean and product: over all, over one dim, over two, with the dim kept."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(), x.mean(1), x.sum((0, 2)), x.mean(-1, keepdim=True), x.prod(2)

    torch.manual_seed(0)
    return model, (torch.randn(5, 17, 9),)


def extremes():
    """Maximum and minimum with their indices, amax, argmin."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        values, indices = x.max(1)
        return values, indices, x.amax((0, 1)), x.argmin(0), x.min()

    torch.manual_seed(0)
    return model, (torch.randn(13, 21),)


def softmax():
    """Softmax, log_softmax and logsumexp of large numbers."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.softmax(-1), x.log_softmax(0), x.logsumexp(1)

    torch.manual_seed(0)
    return model, (torch.randn(9, 65) * 50,)


def variance():
    """Variance and standard deviation, corrected and not, of numbers far from zero."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.var(1), x.std(0, correction=0), *torch.var_mean(x, -1, keepdim=True)

    torch.manual_seed(0)
    return model, (torch.randn(12, 40) + 100,)


def cumulative():
    """Cumulative sum, product and maximum."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.cumsum(1), x.cumprod(0), x.cummax(1)[0]

    torch.manual_seed(0)
    return model, (torch.randn(7, 30),)


def any_and_all():
    """any, all and a count of what is true."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        positive = x > 0
        return positive.any(1), positive.all(), positive.sum(0), torch.count_nonzero(positive)

    torch.manual_seed(0)
    return model, (torch.randn(6, 11),)


def sorting():
    """sort, argsort and topk."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        values, indices = x.sort(-1, descending=True)
        return values, indices, x.argsort(0), *x.topk(3, -1)

    torch.manual_seed(0)
    return model, (torch.randperm(120).reshape(8, 15).float(),)
