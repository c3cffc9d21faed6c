"""Two matrix products and what is around them: what is one kernel depends on the switches that it is compiled with."""

import torch


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 32)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.first(x).relu().softmax(-1)
        waves = y.sin().cos()  # of another size
        return self.second(scores).sum() + waves.sum(), scores.mean(0)


def program() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Two().eval().requires_grad_(False), (torch.randn(16, 64), torch.randn(7, 5))
