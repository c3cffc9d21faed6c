"""Correct models of other kinds than `diff_models`, from configs with random weights: they compile in seconds."""

from typing import Any

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, Any]


def t5() -> Made:
    from transformers import T5Config, T5Model

    sizes: dict[str, Any] = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 1,
        "num_decoder_layers": 1,
        "num_heads": 4,
    }
    model = T5Model(T5Config(vocab_size=100, use_cache=False, **sizes))
    return model, {"input_ids": tokens(), "decoder_input_ids": tokens()}


def mamba() -> Made:
    from transformers import MambaConfig, MambaModel

    config = MambaConfig(
        vocab_size=100, hidden_size=32, state_size=4, num_hidden_layers=1, time_step_rank=4, use_cache=False
    )
    return MambaModel(config), {"input_ids": tokens(length=6)}


def whisper() -> Made:
    from transformers import WhisperConfig, WhisperModel

    sizes: dict[str, Any] = {
        f"{part}_{what}": size
        for part in ("encoder", "decoder")
        for what, size in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 64))
    }
    ids: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = WhisperConfig(
        vocab_size=100, d_model=32, num_mel_bins=8, max_source_positions=16, max_target_positions=16, **{**sizes, **ids}
    )
    config.use_cache = False
    return WhisperModel(config), {"input_features": torch.randn(1, 8, 32), "decoder_input_ids": tokens(length=8)}


def mixtral() -> Made:
    from transformers import MixtralConfig, MixtralModel

    config = MixtralConfig(
        vocab_size=100,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        max_position_embeddings=32,
        use_cache=False,
    )
    return MixtralModel(config), {"input_ids": tokens()}


def swin() -> Made:
    from transformers import SwinConfig, SwinModel

    config = SwinConfig(image_size=32, patch_size=4, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4)
    return SwinModel(config), {"pixel_values": torch.randn(1, 3, 32, 32)}


def efficientnet() -> Made:
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig

    residual = MBConvConfig(4, 3, 1, 8, 8, 1, 1.0, 1.0)
    return EfficientNet([residual], dropout=0.2, num_classes=10, last_channel=32), (torch.randn(2, 3, 32, 32),)


def deeplab() -> Made:
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead, DeepLabV3

    backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=4, padding=1), nn.BatchNorm2d(16), nn.ReLU())
    return DeepLabV3(Named(backbone), DeepLabHead(16, 5, atrous_rates=(2, 3))), (torch.randn(2, 3, 32, 32),)


class Named(nn.Module):
    """What DeepLab takes for a backbone: features by name."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"out": self.body(x)}


def tokens(length: int = 12) -> Tensor:
    return torch.randint(3, 100, (1, length))


MODELS = {
    "t5": t5,
    "mamba": mamba,
    "whisper": whisper,
    "mixtral": mixtral,
    "swin": swin,
    "efficientnet": efficientnet,
    "deeplab": deeplab,
}
