"""Empty, small and large tensors"""

import torch
from torch import Tensor

QUICK = ("empty", "scalars")


def empty():
    """Tensors without elements: reductions, products and concatenations of them."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x + 1, x.sum(), x.sum(0), x.t() @ x, torch.cat((x, y))

    torch.manual_seed(0)
    return model, (torch.randn(0, 5), torch.randn(3, 5))


def scalars():
    """Tensors without dims, and of one element."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x * 2 + y, x.reshape(1, 1) - y, y.sum(), x.expand(3)

    return model, (torch.tensor(1.25), torch.tensor([0.5]))


def many_dims():
    """A tensor of seven dims."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.permute(6, 4, 2, 0, 1, 3, 5) + 1, x.sum((1, 3, 5)), x.flatten(2, 5).softmax(2)

    torch.manual_seed(0)
    return model, (torch.randn(2, 3, 2, 3, 2, 3, 2),)


def many_inputs():
    """Forty inputs and as many outputs."""

    def model(*inputs: Tensor) -> list[Tensor]:
        whole = torch.stack(inputs).sum(0)
        return [x - whole for x in inputs]

    torch.manual_seed(0)
    return model, tuple(torch.randn(3, 5) for _ in range(40))


def large():
    """Elementwise operations and sums of four million elements."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x.sin() * 2 + 1).relu()
        return y, y.sum(1)

    torch.manual_seed(0)
    return model, (torch.randn(2048, 2048),)


def large_product():
    """A product of two matrices of 768 rows and columns, with a bias and a GELU."""

    def model(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.nn.functional.gelu(x @ weight + bias)

    torch.manual_seed(0)
    return model, (torch.randn(768, 768), torch.randn(768, 768) / 28, torch.randn(768))


def deep():
    """A chain of two hundred operations."""

    def model(x: Tensor) -> Tensor:
        for step in range(100):
            x = (x * 0.99 + step / 100).sin()
        return x

    torch.manual_seed(0)
    return model, (torch.randn(64),)
