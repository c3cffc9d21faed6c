"""Custom ops"""

import torch
from torch import Tensor

QUICK = ("functional",)


@torch.library.custom_op("idbg_conform::shifted_square", mutates_args=())
def _shifted_square(x: Tensor, shift: float) -> Tensor:
    return (x + shift) ** 2


@_shifted_square.register_fake
def _(x: Tensor, shift: float) -> Tensor:
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output) -> None:
    x, ctx.shift = inputs
    ctx.save_for_backward(x)


def _backward(ctx, gradient):
    (x,) = ctx.saved_tensors
    return 2 * (x + ctx.shift) * gradient, None


_shifted_square.register_autograd(_backward, setup_context=_setup_context)


@torch.library.custom_op("idbg_conform::scale_", mutates_args=("x",))
def _scale_(x: Tensor, factor: float) -> None:
    x.mul_(factor)


def functional():
    """An op of torch.library with a fake kernel, between two others."""

    def model(x: Tensor) -> Tensor:
        return _shifted_square(x.relu(), 0.5) + 1

    torch.manual_seed(0)
    return model, (torch.randn(5, 6),)


def mutating():
    """An op that writes to its argument."""

    def model(x: Tensor) -> Tensor:
        y = x + 1
        _scale_(y, 3.0)
        return y.relu()

    torch.manual_seed(0)
    return model, (torch.randn(5, 6),)


def differentiated():
    """An op with a gradient of its own, in a training step."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 6)

    def model(x: Tensor) -> Tensor:
        return _shifted_square(layer(x), 0.5)

    return model, (torch.randn(5, 6),), lambda out: out.mean()
