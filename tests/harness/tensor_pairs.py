"""Pairs of tensors to compare."""

import math

import torch

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def noisy(shape: tuple[int, ...], dtype: torch.dtype, seed: int, nonfinite: bool = False) -> tuple[torch.Tensor, ...]:
    """A tensor and another one near it, in `dtype`; with `nonfinite`, some NaN and infinities on one side or both."""
    random = torch.Generator().manual_seed(seed)
    reference = torch.randn(shape, generator=random, dtype=torch.float64)
    spread = 10.0 ** torch.randint(-9, 0, shape, generator=random)
    test = reference + spread * torch.randn(shape, generator=random, dtype=torch.float64)
    reference, test = reference.to(dtype), test.to(dtype)
    if nonfinite and reference.numel() > 6:
        values = torch.tensor([math.nan, math.inf, -math.inf, 1.0], dtype=torch.float64).to(dtype)
        places = torch.randperm(reference.numel(), generator=random)[:6]
        for side in (reference, test):
            picks = torch.randint(0, 4, (6,), generator=random)
            side.view(-1)[places] = values[picks]
    return reference, test
