"""Real models with random weights, small enough to compile in seconds."""

from typing import Any

import torch
from torch import Tensor, nn


class SelectiveStateSpace(nn.Module):
    """Mamba's block: a short causal convolution, then a recurrence whose matrices depend on the input."""

    def __init__(self, width: int = 32, state: int = 8, rank: int = 4) -> None:
        super().__init__()
        self.state, self.rank = state, rank
        self.norm = nn.RMSNorm(width)
        self.inner = nn.Linear(width, 4 * width, bias=False)
        self.conv = nn.Conv1d(2 * width, 2 * width, 4, groups=2 * width, padding=3)
        self.select = nn.Linear(2 * width, rank + 2 * state, bias=False)
        self.step = nn.Linear(rank, 2 * width)
        decay = torch.arange(1, state + 1, dtype=torch.float32).repeat(2 * width, 1)
        self.log_decay = nn.Parameter(decay.log())
        self.skip = nn.Parameter(torch.ones(2 * width))
        self.out = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        u, gate = self.inner(self.norm(x)).chunk(2, dim=-1)
        u = nn.functional.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        low, b, c = self.select(u).split([self.rank, self.state, self.state], dim=-1)
        step = nn.functional.softplus(self.step(low))
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.log_decay.float()).to(x.dtype))
        drive = (step * u).unsqueeze(-1) * b.unsqueeze(2)
        hidden, states = torch.zeros_like(drive[:, 0]), []
        for at in range(length):
            hidden = decay[:, at] * hidden + drive[:, at]
            states.append((hidden * c[:, at].unsqueeze(1)).sum(-1))
        y = (torch.stack(states, 1) + u * self.skip) * nn.functional.silu(gate)
        return x + self.out(y)


def state_space() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return SelectiveStateSpace(), (torch.randn(2, 8, 32),)


SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


def bert() -> tuple[nn.Module, dict[str, Tensor]]:
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(vocab_size=100, max_position_embeddings=32, **SHAPE))
    mask = torch.ones(2, 16, dtype=torch.int64)
    mask[1, 10:] = 0
    return model, {"input_ids": torch.randint(0, 100, (2, 16)), "attention_mask": mask}


def gpt2() -> tuple[nn.Module, dict[str, Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=32, n_embd=64, n_layer=1, n_head=4))
    return model, {"input_ids": torch.randint(0, 100, (2, 16))}


def vit() -> tuple[nn.Module, dict[str, Tensor]]:
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(image_size=32, patch_size=8, **SHAPE)), {"pixel_values": torch.randn(2, 3, 32, 32)}


def resnet() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A block with and one without downsampling: the others differ in their sizes alone. examples/resnet.py is all."""
    from torchvision.models import resnet18

    model = resnet18(weights=None)
    model.layer1, model.layer2 = model.layer1[:1], model.layer2[:1]
    model.layer3, model.layer4, model.fc = nn.Identity(), nn.Identity(), nn.Linear(128, 100)
    return model, (torch.randn(2, 3, 32, 32),)


MODELS = {"bert": bert, "gpt2": gpt2, "vit": vit, "state_space": state_space, "resnet18": resnet}
