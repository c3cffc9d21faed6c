"""A small classifier with a loss, so that idbg compiles forward and backward."""

import torch
from torch import nn


class Classifier(nn.Module):
    """Two hidden layers; 10 classes, which no multiple of 16 divides: try an alignment rule."""

    def __init__(self, features: int = 64, hidden: int = 128, classes: int = 10):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.LayerNorm(hidden))
        self.head = nn.Linear(hidden, classes)

    def forward(self, features):
        return self.head(self.body(features))


def program(batch: int = 32):
    """A model, its inputs, and a loss of its output: the loss makes idbg compile the backward too."""
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (batch,))
    return Classifier(), (torch.randn(batch, 64),), lambda logits: nn.functional.cross_entropy(logits, labels)


IDBG_ACCELERATOR = "mock"  # held against its rules, unless --accelerator names another: made up, to try rules on
