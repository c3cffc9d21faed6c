"""BERT-base-multilingual (its real configuration, random weights) on 128 tokens: needs transformers."""

import torch
from transformers import BertConfig, BertModel


def program(batch: int = 1, tokens: int = 128):
    """What bert-base-multilingual-cased is configured as: 12 layers of width 768, 119,547 tokens of vocabulary."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(vocab_size=119_547, directionality="bidi", pooler_fc_size=768)).eval()
    ids = torch.randint(0, 119_547, (batch, tokens))
    return model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
