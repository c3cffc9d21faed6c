"""Generate tokens with a Llama and a cache that grows, or with a static one: `generate.py [static]`."""

import sys

import torch
from measurements import DEVICE
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes, **heads, **tokens)).eval().to(DEVICE)
model.forward = torch.compile(model.forward, fullgraph=True)
prompt = torch.randint(3, 64, (1, 8)).to(DEVICE)
cache = {"cache_implementation": "static"} if "static" in sys.argv else {}
with torch.no_grad():
    print(model.generate(prompt, max_new_tokens=6, do_sample=False, **cache).tolist())
