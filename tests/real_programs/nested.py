"""Train on nested (jagged) tensors, with another number of rows in the second call."""

import torch
from measurements import DEVICE

torch.manual_seed(0)
linear = torch.nn.Linear(8, 8).to(DEVICE)


def jagged(*lengths):
    rows = [torch.randn(length, 8).to(DEVICE) for length in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged, requires_grad=True)


@torch.compile
def block(x):
    return torch.nn.functional.gelu(linear(x)) * 2


nested = jagged(3, 5, 2)
out = block(nested)
out.values().sum().backward()
print(f"{out.values().sum().item():.4f} {nested.grad.values().sum().item():.4f} {linear.weight.grad.sum().item():.4f}")
print(f"{block(jagged(4, 1)).values().sum().item():.4f}")
