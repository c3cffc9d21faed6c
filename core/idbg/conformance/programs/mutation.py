"""Mutation in place"""

import torch
from torch import Tensor, nn

QUICK = ("input_in_place", "buffer")


def local_in_place():
    """Writes in place to a tensor of the function's own, through slices and views."""

    def model(x: Tensor) -> Tensor:
        y = x.clone()
        y[1] = 0
        y[:, 2:4].mul_(3)
        y.view(-1)[::5].add_(1)
        return y.relu_()

    torch.manual_seed(0)
    return model, (torch.randn(4, 6),)


def input_in_place():
    """Writes to an input: the caller sees them."""

    def model(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x * 2

    torch.manual_seed(0)
    return model, (torch.randn(5, 7), torch.randn(5, 7))


def input_through_view():
    """Writes to a view of an input, and reads the input after that."""

    def model(x: Tensor) -> Tensor:
        x[1:3].mul_(-1)
        x.t()[0].fill_(7)
        return x.sum(1)

    torch.manual_seed(0)
    return model, (torch.randn(5, 4),)


def buffer():
    """A buffer of the module that each call updates."""

    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.Buffer(torch.zeros(8))
            self.calls = nn.Buffer(torch.zeros((), dtype=torch.int64))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1)
            self.mean.lerp_(x.mean(0), 0.25)
            return x - self.mean

    torch.manual_seed(0)
    return Mean(), (torch.randn(6, 8),)


def copy_and_resize():
    """copy_ from another dtype, fill_, zero_, and out= of a function."""

    def model(x: Tensor, out: Tensor) -> Tensor:
        out.copy_(x)
        torch.mul(out, 2, out=out)
        y = torch.empty_like(out).fill_(3)
        return y.zero_() + out

    torch.manual_seed(0)
    return model, (torch.arange(12).reshape(3, 4), torch.zeros(3, 4))
