"""An ordinary training script that knows nothing of idbg: `idbg-tui examples/plain_script.py -- --steps 3`."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=32)
    options = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, options.hidden), nn.Tanh(), nn.Linear(options.hidden, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    features = torch.randn(64, 8)
    target = features.sum(dim=1, keepdim=True)

    @torch.compile
    def loss_of(batch, wanted):
        return (model(batch) - wanted).square().mean()

    for step in range(options.steps):
        optimizer.zero_grad()
        loss = loss_of(features, target)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
