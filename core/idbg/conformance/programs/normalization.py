"""Normalization and embeddings"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

QUICK = ("layer_norm",)


def layer_norm():
    """Layer norm with a residual."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.layer = nn.LayerNorm(48), nn.Linear(48, 48)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.layer(self.norm(x))

    torch.manual_seed(0)
    return Block().eval(), (torch.randn(4, 10, 48),)


def batch_norm():
    """Batch norm with its running statistics, after a convolution."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU())
    nn.init.uniform_(model[1].running_var, 0.5, 2.0)
    nn.init.normal_(model[1].running_mean)
    return model.eval(), (torch.randn(2, 3, 9, 9),)


def group_norm():
    """Group norm, instance norm and RMS norm."""

    def model(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        return F.group_norm(x, 3, weight), F.instance_norm(x), F.rms_norm(x, (x.shape[-1],))

    torch.manual_seed(0)
    return model, (torch.randn(2, 6, 5, 8), torch.randn(6))


def embedding():
    """An embedding with a padding index, and the mean of bags."""

    def model(indices: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        return F.embedding(indices, table, padding_idx=0), F.embedding_bag(indices, table, mode="mean")

    torch.manual_seed(0)
    return model, (torch.randint(0, 20, (4, 6)), torch.randn(20, 12))
