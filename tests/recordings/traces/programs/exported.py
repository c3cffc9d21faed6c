"""Two models that AOTInductor compiles."""

import torch


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(8, width)

    def forward(self, x):
        return torch.relu(self.linear(x)).sum(-1)


for width in (4, 6):
    exported = torch.export.export(Net(width).eval(), (torch.randn(2, 8),))
    torch._inductor.aoti_compile_and_package(exported)
