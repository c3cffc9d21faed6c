"""Train with CUDA graphs, or on a CPU with what is left of the mode."""

import torch
from measurements import DEVICE

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.SiLU(), torch.nn.Linear(32, 4)).to(DEVICE)
compiled = torch.compile(model, mode="reduce-overhead")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(8, 16).to(DEVICE)
for _ in range(5):
    torch.compiler.cudagraph_mark_step_begin()
    loss = compiled(inputs).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.4f}")
