"""Training"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

QUICK = ("classifier",)


def classifier():
    """A classifier's training step: loss and gradients of all weights."""
    torch.manual_seed(0)
    labels = torch.randint(0, 6, (8,))
    model = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 6))
    return model, (torch.randn(8, 20),), lambda logits: F.cross_entropy(logits, labels)


def convolutions():
    """Convolution, batch norm in training, max pooling: gradients, and the running statistics."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    return model.train(), (torch.randn(4, 3, 8, 8),), lambda out: out.square().mean()


def embeddings():
    """The gradient of an embedding whose rows are used several times."""
    torch.manual_seed(0)
    return nn.Embedding(12, 6), (torch.randint(0, 12, (5, 4)),), lambda out: (out.sum(1) ** 2).mean()


def attention():
    """The gradients of multi-head attention."""

    class SelfAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.MultiheadAttention(16, 4, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.heads(x, x, x, need_weights=False)[0]

    torch.manual_seed(0)
    return SelfAttention(), (torch.randn(2, 7, 16),), lambda out: out.square().mean()


def recomputed():
    """Activation checkpointing: the forward of a block is recomputed in the backward."""

    class Recomputed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.head = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)), nn.Linear(16, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(checkpoint(self.block, x, use_reentrant=False))

    torch.manual_seed(0)
    return Recomputed(), (torch.randn(6, 16),), lambda out: out.mean()


class _Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 2)


def own_gradient():
    """An autograd.Function with a backward of its own."""
    torch.manual_seed(0)
    layer = nn.Linear(10, 10)

    def model(x: Tensor) -> Tensor:
        return _Clipped.apply(layer(x) * 3)

    return model, (torch.randn(4, 10),), lambda out: out.square().sum()
