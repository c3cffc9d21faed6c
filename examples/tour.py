"""What `idbg tour` walks through: a model so small that it compiles in seconds, with something to see in every pane."""

import torch
from torch import nn


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)  # the rules of `mock` allow no convolution
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        features = self.conv(images).relu()
        pooled = features.mean(dim=(2, 3))
        return self.head(pooled).softmax(dim=-1)


def program():
    torch.manual_seed(0)
    return Tiny().eval(), (torch.randn(2, 3, 16, 16),)


IDBG_ACCELERATOR = "mock"  # held against its rules, unless --accelerator names another: made up, to try rules on
