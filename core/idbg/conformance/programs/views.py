"""Views and aliasing"""

import torch
from torch import Tensor

QUICK = ("transposes", "output_is_view_of_input")


def transposes():
    """transpose, permute, view, reshape and squeeze of one another."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        heads = x.view(4, 6, 2, 5).transpose(1, 2)
        return heads.reshape(8, 30) + 1, heads.permute(3, 0, 1, 2) * 2, x.unsqueeze(1).squeeze() - 1

    torch.manual_seed(0)
    return model, (torch.randn(4, 6, 10),)


def strided_inputs():
    """Inputs that are not contiguous: a transpose, every second row, and channels last."""

    def model(a: Tensor, b: Tensor, image: Tensor) -> tuple[Tensor, ...]:
        return a.exp() + 1, b * 2, image.relu().sum(1)

    torch.manual_seed(0)
    image = torch.randn(2, 4, 5, 5).to(memory_format=torch.channels_last)
    return model, (torch.randn(7, 5).t(), torch.randn(10, 6)[::2, 1:], image)


def expanded():
    """expand without copies, broadcast_to, and a sum over what was expanded."""

    def model(x: Tensor, row: Tensor) -> tuple[Tensor, ...]:
        wide = row.expand(6, -1)
        return wide + x, wide.sum(0), torch.broadcast_to(row[:, None], (9, 4)) * 2

    torch.manual_seed(0)
    return model, (torch.randn(6, 9), torch.randn(9))


def as_strided():
    """as_strided, unfold and diagonal: elements that several places share."""

    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x.as_strided((3, 4), (2, 1), 1) + 1, x.unfold(0, 4, 2).sum(1), x.view(4, 6).diagonal() * 2

    torch.manual_seed(0)
    return model, (torch.randn(24),)


def output_is_view_of_input():
    """Outputs that share memory with the input, as eager's do."""

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.view(-1), x.t()[1:]

    torch.manual_seed(0)
    return model, (torch.randn(4, 6),)


def outputs_share_memory():
    """Two outputs that share memory, one of which is the other's view, and one that is the input itself."""

    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = x * 2
        return y, y[1:3], x

    torch.manual_seed(0)
    return model, (torch.randn(5, 4),)
