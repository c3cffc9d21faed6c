"""Find boxes in an image with torchvision, its backbone compiled."""

import torch
import torchvision
from measurements import DEVICE

torch.manual_seed(0)
build = torchvision.models.detection.ssdlite320_mobilenet_v3_large
model = build(weights=None, weights_backbone=None, num_classes=3).eval().to(DEVICE)
model.backbone = torch.compile(model.backbone)
with torch.no_grad():
    found = model([torch.rand(3, 320, 320).to(DEVICE)])
print(tuple(found[0]["boxes"].shape))
