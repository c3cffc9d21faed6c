"""Train a model of timm in half precision with `GradScaler` and an average of its weights."""

import timm
import torch
from measurements import DEVICE
from timm.utils import ModelEmaV3

torch.manual_seed(0)
model = timm.create_model("test_resnet", num_classes=10).to(DEVICE).train()
average = ModelEmaV3(model, decay=0.9)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler(DEVICE)
compiled = torch.compile(model)
dtype = torch.float16 if DEVICE == "cuda" else torch.bfloat16
images, labels = torch.randn(4, 3, 64, 64).to(DEVICE), torch.randint(0, 10, (4,)).to(DEVICE)
for _ in range(3):
    with torch.autocast(DEVICE, dtype):
        loss = torch.nn.functional.cross_entropy(compiled(images), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    average.update(model)
    print(f"{loss.item():.2f}")
with torch.no_grad():
    print(f"{average.module.eval()(images).sum().item():.1f}")
