"""Call a model whose weights torchao has quantized to eight bits."""

import torch
from measurements import DEVICE
from torchao.quantization import Int8WeightOnlyConfig, quantize_

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).eval().to(DEVICE)
quantize_(model, Int8WeightOnlyConfig())
compiled = torch.compile(model)
with torch.no_grad():
    print(f"{compiled(torch.randn(4, 64).to(DEVICE)).sum().item():.3f}")
