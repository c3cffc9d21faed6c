"""Compile the step of an optimizer."""

import torch
from measurements import DEVICE

torch.manual_seed(0)
layers = torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
model = torch.nn.Sequential(*layers).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.compile(fullgraph=False)
def step():
    optimizer.step()


inputs, targets = torch.randn(8, 16).to(DEVICE), torch.randn(8, 4).to(DEVICE)
for _ in range(4):
    loss = ((model(inputs) - targets) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    step()
    print(f"{loss.item():.4f}")
