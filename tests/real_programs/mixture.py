"""Train a Mixtral: two of four experts compute each token."""

import torch
from measurements import DEVICE
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
model = MixtralForCausalLM(MixtralConfig(**sizes, **heads, num_local_experts=4, num_experts_per_tok=2))
compiled = torch.compile(model.to(DEVICE).train())
tokens = torch.randint(3, 64, (2, 16)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = compiled(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.4f}")
