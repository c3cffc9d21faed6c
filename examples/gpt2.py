"""GPT-2 small (random weights) on 128 tokens, without a cache of keys: needs transformers."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def program(batch: int = 1, tokens: int = 128):
    """12 layers of width 768, 124 million weights."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    ids = torch.randint(0, model.config.vocab_size, (batch, tokens))
    return model, (), {"input_ids": ids, "use_cache": False}
