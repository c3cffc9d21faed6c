"""Indexing and rearranging"""

import torch
from torch import Tensor
from torch.nn import functional as F

QUICK = ("gather_and_scatter", "joining")


def slicing():
    """Slices with steps, negative indices and an ellipsis."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x[1:-1:2] + 1, x[..., -3:] * 2, x[:, None, 2].clone(), x[-1] - 1

    torch.manual_seed(0)
    return model, (torch.randn(9, 8, 7),)


def advanced_indices():
    """Indices of tensors: one, two beside one another, negative ones, and index_select."""

    def model(x: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, ...]:
        return x[rows], x[rows, columns], x[:, columns], x.index_select(1, columns), x[-rows - 1]

    torch.manual_seed(0)
    return model, (torch.randn(8, 9), torch.tensor([0, 7, 3, 3]), torch.tensor([1, 8, 0, 2]))


def gather_and_scatter():
    """gather, scatter and scatter_add with indices that occur twice."""

    def model(x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        zeros = torch.zeros_like(x)
        return x.gather(1, at), zeros.scatter_add(1, at, x[:, :5]), zeros.scatter(0, at[:1], 2.0)

    torch.manual_seed(0)
    return model, (torch.randn(6, 9), torch.randint(0, 6, (6, 5)))


def index_put():
    """index_put with accumulation, index_add, and a masked fill."""

    def model(x: Tensor, at: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        added = x.index_put((at,), values, accumulate=True)
        return added, x.index_add(0, at, values, alpha=2), x.masked_fill(x > 0, -1.0)

    torch.manual_seed(0)
    return model, (torch.randn(7, 5), torch.tensor([1, 1, 6]), torch.randn(3, 5))


def joining():
    """cat, stack, split, chunk and unbind."""

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        first, second = torch.cat((x, y), 1).split((3, 7), 1)
        return torch.stack((x, y), 1), first * 2, second + 1, *(part + 1 for part in x.chunk(2)), x.unbind(1)[2] * 3

    torch.manual_seed(0)
    return model, (torch.randn(6, 5), torch.randn(6, 5))


def rearranging():
    """pad (constant, reflect), roll, flip, repeat, tril, pixel_shuffle."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        padded = F.pad(x, (1, 2), value=3.0), F.pad(x, (1, 1, 2, 2), mode="reflect")
        return *padded, x.roll((1, -2), (2, 3)), x.flip(-1), x.repeat(1, 1, 2, 1), x.tril(), F.pixel_shuffle(x, 2)

    torch.manual_seed(0)
    return model, (torch.randn(1, 4, 5, 6),)


def data_dependent_size():
    """A boolean mask as an index, and nonzero: the size of the result depends on the values."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return x[x > 0] * 2, x.nonzero() + 1

    torch.manual_seed(0)
    return model, (torch.randn(6, 7),)
