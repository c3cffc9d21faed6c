"""Train in bfloat16 with Hugging Face's `Accelerator`, which compiles the model."""

import torch
from accelerate import Accelerator
from accelerate.utils import TorchDynamoPlugin
from measurements import DEVICE
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
plugin = TorchDynamoPlugin(backend="inductor")
accelerator = Accelerator(cpu=DEVICE == "cpu", dynamo_plugin=plugin, mixed_precision="bf16")
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
batches = DataLoader(TensorDataset(torch.randn(16, 16), torch.randint(0, 4, (16,))), batch_size=8)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
for inputs, labels in batches:
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print(f"{loss.item():.3f}")
