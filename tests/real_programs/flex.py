"""Flex attention with a block mask, and with a bias of the distance."""

import torch
from measurements import DEVICE
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.manual_seed(0)
query, key, value = (torch.randn(1, 2, 128, 16).to(DEVICE) for _ in range(3))
causal = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 128, 128, device=DEVICE)
attention = torch.compile(flex_attention)
with torch.no_grad():
    print(f"{attention(query, key, value, block_mask=causal).sum().item():.3f}")
    biased = attention(query, key, value, score_mod=lambda score, b, h, i, j: score + 0.1 * (i - j))
    print(f"{biased.sum().item():.3f}")
