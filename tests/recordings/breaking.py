"""What breaks, and what compiles again: a print, a branch on data, a closure over a number, sizes and a dtype; recorded
for the pane "Why".
"""

import torch


def middle(x: torch.Tensor, n: int) -> torch.Tensor:
    y = x.sin() * n
    print("in the middle")
    if y.sum() > 0:
        y = y + 1
    return y.cos()


def product(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.T).relu().sum()


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale).relu()


compiled = torch.compile(middle)
for number in (1, 2):
    compiled(torch.ones(4, 4), number)
multiplied = torch.compile(product)
for size in (4, 5):
    multiplied(torch.ones(size, 4))
multiplied(torch.ones(4, 4, dtype=torch.float64))
for layer in (Layer(), Layer(), Layer()):
    torch.compile(layer)(torch.ones(2, 4))
