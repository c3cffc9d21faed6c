"""Train a graph convolution of PyTorch Geometric."""

import torch
from measurements import DEVICE
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(8, 16), GCNConv(16, 3)

    def forward(self, nodes, edges):
        return self.second(self.first(nodes, edges).relu(), edges)


torch.manual_seed(0)
model = Net().to(DEVICE)
compiled = torch.compile(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
tensors = torch.randn(12, 8), torch.randint(0, 12, (2, 40)), torch.randint(0, 3, (12,))
nodes, edges, labels = (each.to(DEVICE) for each in tensors)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(compiled(nodes, edges), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
