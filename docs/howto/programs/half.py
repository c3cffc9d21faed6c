"""A block that is slow on a processor: its matrix products are in float16."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int = 256):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def program():
    torch.manual_seed(0)
    model = nn.Sequential(Block(), Block()).eval().half()
    return model, (torch.randn(128, 256).half(),)
