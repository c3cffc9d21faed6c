"""Train adapters of PEFT in a Llama: `lora.py [dropout]`."""

import sys

import torch
from measurements import DEVICE
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
rate = 0.1 if "dropout" in sys.argv else 0.0
adapters = LoraConfig(r=4, lora_alpha=8, lora_dropout=rate, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(LlamaForCausalLM(LlamaConfig(**sizes, **heads)), adapters).train().to(DEVICE)
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
compiled = torch.compile(model)
tokens = torch.randint(3, 64, (2, 16)).to(DEVICE)
for _ in range(3):
    loss = compiled(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.4f}")
