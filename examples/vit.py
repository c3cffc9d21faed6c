"""ViT-B/16 (random weights) on one image of 224 x 224: needs transformers."""

import torch
from transformers import ViTConfig, ViTForImageClassification


def program(batch: int = 1):
    """12 layers of width 768 on 197 patches, 86 million weights."""
    torch.manual_seed(0)
    model = ViTForImageClassification(ViTConfig(num_labels=1000)).eval()
    return model, (), {"pixel_values": torch.randn(batch, 3, 224, 224)}
