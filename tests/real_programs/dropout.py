"""Train with dropout before and after a graph break."""

import torch
from measurements import DEVICE

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        hidden = torch.nn.functional.dropout(self.first(x), 0.5)
        torch._dynamo.graph_break()
        return torch.nn.functional.dropout(self.last(hidden), 0.1)


model = Net().to(DEVICE)
compiled = torch.compile(model)
inputs = torch.randn(4, 8).to(DEVICE)
for _ in range(3):
    loss = compiled(inputs).pow(2).mean()
    loss.backward()
    print(f"{loss.item():.5f}")
