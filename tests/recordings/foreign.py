"""A model that IREE and OpenVINO compile."""

import torch
from torch import Tensor, nn


class Net(nn.Module):
    """Two linear layers and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        scores = self.second(torch.relu(hidden))
        return scores.softmax(-1)


def program() -> tuple[nn.Module, tuple[Tensor]]:
    """The model, and its input."""
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(4, 16),)
