"""A small model, with an op that the rules deny and a peak of memory that they do not allow."""

import torch


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(16, 16)
        self.two = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.one(x))
        y = y.cumsum(1)
        return torch.sigmoid(self.two(y)).sum()


def program() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Small(), (torch.randn(4, 16),)
