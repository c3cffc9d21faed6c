"""Dynamic shapes"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

QUICK = ("batch_sizes",)


def _each(step):
    """A model that calls the step with each of its inputs: only the step is compiled, so the calls are separate."""

    @torch.compiler.disable(recursive=False)
    def model(*inputs: Tensor) -> list[Tensor]:
        return [step(x) for x in inputs]

    return model


def batch_sizes():
    """One layer for batches of four sizes: the second size makes torch compile it for any."""
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(12, 20), nn.ReLU()).eval()
    return _each(layer), tuple(torch.randn(size, 12) for size in (4, 7, 9, 1))


def sequence_lengths():
    """Attention for sequences of three lengths, with a mask of the length."""

    def step(x: Tensor) -> Tensor:
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask).reshape(length, -1)

    torch.manual_seed(0)
    return _each(step), tuple(torch.randn(2, length, 8) for length in (5, 8, 3))


def sizes_as_numbers():
    """Sizes in arithmetic, in arange, in a reshape and in a split."""

    def step(x: Tensor) -> Tensor:
        rows = x.shape[0]
        first, rest = x.split((rows // 2, rows - rows // 2))
        return first.sum() / rows + torch.arange(rows) * rest.reshape(-1)[:rows]

    torch.manual_seed(0)
    return _each(step), tuple(torch.randn(rows, 6) for rows in (6, 9, 11))
