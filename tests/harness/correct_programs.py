"""Programs that torch compiles right, for a GPU: transformers and other networks from configs with random weights.

Each is forward and loss in a precision: "fp32", "bf16" (weights and inputs) or "autocast" (bfloat16); "train" has the
gradients compared too.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from tests.harness import clean_models, diff_models

Made = tuple[nn.Module, Any]
PRECISIONS = ("fp32", "bf16", "autocast")


class CorrectProgram(NamedTuple):
    """A model, its inputs, and whether it trains."""

    model: nn.Module
    inputs: Any
    train: bool


class Autocast(nn.Module):
    """The model in bfloat16 by autocast."""

    def __init__(self, model: nn.Module, device: str) -> None:
        super().__init__()
        self.model, self.device = model, device

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(self.device, torch.bfloat16):
            return self.model(*args, **kwargs)


class Decoder(nn.Module):
    """GPT's blocks: fused causal attention, GELU, a head."""

    class Block(nn.Module):
        def __init__(self, size: int, heads: int) -> None:
            super().__init__()
            self.heads, self.before, self.after = heads, nn.LayerNorm(size), nn.LayerNorm(size)
            self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).flatten(2))
            return x + self.mlp(self.after(x))

    def __init__(self, layers: int = 2, size: int = 128, heads: int = 4, words: int = 200) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, size), nn.Linear(size, words)
        self.blocks = nn.Sequential(*(self.Block(size, heads) for _ in range(layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.blocks(self.words(tokens)))


class UNet(nn.Module):
    """Group norm, SiLU, one level down and up again."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, 2, 1))
        self.middle = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, 1, 1))
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(), nn.Conv2d(2 * width, 3, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(torch.cat([x, self.up(self.middle(self.down(x)))], 1))


class Separable(nn.Module):
    """1x1 and depthwise convolutions with batch norm."""

    def __init__(self, width: int = 24, blocks: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU6()),
                *(nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width, bias=False), nn.BatchNorm2d(4 * width)),
                *(nn.ReLU6(), nn.Conv2d(4 * width, width, 1, bias=False), nn.BatchNorm2d(width)),
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean((2, 3)))


class SelfAttention(nn.Module):
    """`nn.MultiheadAttention` over its own input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(64, 4, batch_first=True), nn.LayerNorm(64)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])


class Flex(nn.Module):
    """`flex_attention` with a causal score."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        def relative(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return torch.where(q >= k, score + (k - q) * 0.1, -math.inf)

        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        mixed = flex_attention(q, k, v, score_mod=relative)
        return self.out(mixed.transpose(1, 2).flatten(2))  # type: ignore[union-attr]


def llama() -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
    )
    return LlamaForCausalLM(config), {"input_ids": torch.randint(0, 100, (2, 32))}


def gpt2() -> Made:
    model, inputs = diff_models.gpt2()
    model.config.use_cache = False  # type: ignore[union-attr]
    return model, inputs


def whole_resnet18() -> Made:
    from torchvision.models import resnet18

    return resnet18(weights=None), (torch.randn(2, 3, 64, 64),)


def encoder() -> Made:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(2, 16, 64),)


TRANSFORMERS: dict[str, Callable[[], Made]] = {
    "gpt2": gpt2,
    "llama": llama,
    "bert": diff_models.bert,
    "vit": diff_models.vit,
    "t5": clean_models.t5,
    "whisper": clean_models.whisper,
}
OTHERS: dict[str, Callable[[], Made]] = {
    "decoder": lambda: (Decoder(), (torch.randint(0, 200, (2, 64)),)),
    "attention": lambda: (SelfAttention(), (torch.randn(2, 32, 64),)),
    "encoder": encoder,
    "flex": lambda: (Flex(), (torch.randn(2, 128, 64),)),
    "resnet18": whole_resnet18,
    "separable": lambda: (Separable(), (torch.randn(4, 3, 64, 64),)),
    "unet": lambda: (UNet(), (torch.randn(2, 3, 32, 32),)),
    "swin": clean_models.swin,
    "mixtral": clean_models.mixtral,
    "mamba": clean_models.mamba,
    "efficientnet": clean_models.efficientnet,
    "deeplab": clean_models.deeplab,
}
OTHER_PROGRAMS = (
    *("decoder-fp32-train", "decoder-bf16-train", "decoder-autocast-train"),
    *("attention-fp32-train", "attention-bf16", "encoder-fp32-train", "encoder-autocast-train"),
    *("flex-fp32", "flex-bf16-train"),
    *("resnet18-fp32-train", "resnet18-bf16", "resnet18-autocast-train"),
    *("separable-fp32-train", "unet-bf16", "unet-fp32-train", "swin-fp32", "mixtral-bf16", "mamba-fp32"),
    *("efficientnet-fp32-train", "deeplab-fp32"),
)


def names() -> Iterator[str]:
    """All programs, as "gpt2-bf16-train"."""
    for model in TRANSFORMERS:
        for precision in PRECISIONS:
            yield f"{model}-{precision}"
            yield f"{model}-{precision}-train"
    yield from OTHER_PROGRAMS


def correct_program(name: str, device: str) -> CorrectProgram:
    """The program of this name on this device, from seed 0."""
    model_name, precision, *train = name.split("-")
    torch.manual_seed(0)
    model, inputs = {**TRANSFORMERS, **OTHERS}[model_name]()
    model = model.train(bool(train)).to(device)
    inputs = pytree.tree_map_only(Tensor, lambda each: each.to(device), inputs)
    if precision == "bf16":
        model = model.bfloat16()
        inputs = pytree.tree_map_only(
            Tensor, lambda each: each.bfloat16() if each.is_floating_point() else each, inputs
        )
    elif precision == "autocast":
        model = Autocast(model, device)
    return CorrectProgram(model, inputs, bool(train))
