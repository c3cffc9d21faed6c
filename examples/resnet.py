"""ResNet-18 from torchvision, with random weights: try `idbg-tui examples/resnet.py`."""

import torch
from torchvision.models import resnet18


def program(batch: int = 1):
    """What idbg compiles: a model and its inputs. Without a loss it is compiled for inference."""
    torch.manual_seed(0)
    model = resnet18(weights=None).eval()
    images = torch.randn(batch, 3, 224, 224)
    return model, (images,)


IDBG_ACCELERATOR = "mock"  # held against its rules, unless --accelerator names another: made up, to try rules on
