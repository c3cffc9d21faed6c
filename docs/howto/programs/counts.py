"""A training loop that is compiled again and again: the model counts its calls, and the last batch is smaller."""

import torch
from torch import nn


class Warmed(nn.Module):
    """A layer whose scale grows during the first steps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * min(self.calls / 10, 1.0)


def main():
    torch.manual_seed(0)
    model = Warmed()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in (32, 32, 32, 7):
        optimizer.zero_grad()
        compiled(torch.randn(batch, 16)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
