"""A selective state-space model (Mamba), with its state and a parallel scan over time, in plain PyTorch."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def scan(decay: Tensor, drive: Tensor) -> Tensor:
    """Every state of state[t] = decay[t] * state[t - 1] + drive[t] along dim 1, in log2(length) steps."""
    step = 1
    while step < drive.shape[1]:
        drive = torch.cat([drive[:, :step], decay[:, step:] * drive[:, :-step] + drive[:, step:]], 1)
        decay = torch.cat([decay[:, :step], decay[:, step:] * decay[:, :-step]], 1)
        step *= 2
    return drive


class Mamba(nn.Module):
    """A causal convolution, then a recurrence whose matrices depend on the input (Gu & Dao 2023, algorithm 2)."""

    def __init__(self, width: int, state: int = 16, expand: int = 2):
        super().__init__()
        inner, self.rank, self.state = expand * width, width // 16, state
        self.norm = nn.RMSNorm(width)
        self.into = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.select = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.step = nn.Linear(self.rank, inner)
        self.log_decay = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        u, gate = self.into(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        low, b, c = self.select(u).split([self.rank, self.state, self.state], -1)
        step = F.softplus(self.step(low))
        decay = torch.exp(-step.unsqueeze(-1) * self.log_decay.exp())
        states = scan(decay, (step * u).unsqueeze(-1) * b.unsqueeze(2))
        y = (states * c.unsqueeze(2)).sum(-1) + u * self.skip
        return x + self.out(y * F.silu(gate))


def program(batch: int = 1, tokens: int = 64, layers: int = 4):
    """Blocks of Mamba-130m's size, 4 of its 24, so that it compiles in a minute on two cores."""
    torch.manual_seed(0)
    model = nn.Sequential(*(Mamba(768) for _ in range(layers)), nn.RMSNorm(768)).eval()
    return model, (torch.randn(batch, tokens, 768),)
