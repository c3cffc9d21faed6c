"""Reproduce the random numbers that an Inductor kernel draws from a seed.

The number at flat position i is Philox4x32-10 with the counter i, converted to float as ATen's CPU engine does
(ATen/core/PhiloxRNGEngine.h; the C++ kernels give it 32 bits of the seed), or as triton/language/random.py does.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

_WORD, _HALF = 0xFFFFFFFF, 0x7FFFFFFF
_SCALE = 4.6566127342e-10  # the largest 31-bit integer comes out just below 1
_KEYS = (0x9E3779B9, 0xBB67AE85)
_FACTORS = (0xD2511F53, 0xCD9E8D57)


def drawn(kind: Literal["rand", "randn"], shape: Sequence[int], seed: Tensor, offset: int = 0) -> Tensor:
    """Uniform numbers in [0, 1), or normal ones: float32 of this shape, on the seed's device."""
    on_cpu = seed.device.type == "cpu"
    key = int(seed.item()) & (_WORD if on_cpu else -1)
    count = torch.arange(offset, offset + math.prod(shape), device=seed.device) & _WORD
    first, second = (_fraction(word, on_cpu) for word in _words(count, key))
    if kind == "randn":  # Box and Muller's
        radius = 1 - first if on_cpu else first.clamp(min=1e-7)
        angle = 2 * math.pi * ((1 - second) if on_cpu else second)
        first = (-2 * radius.double().log()).sqrt().mul(angle.double().cos()).float()
    return first.reshape(tuple(shape))


def _fraction(word: Tensor, on_cpu: bool) -> Tensor:
    low = word & _HALF
    if not on_cpu:  # Triton takes the word for a signed number, and ~x for a negative one
        low = torch.where(word > _HALF, _HALF - low, low)
    return low.to(torch.float32) * _SCALE


def _words(count: Tensor, key: int) -> tuple[Tensor, Tensor]:
    """The engine's first two words. int64 holds its 32 bits: products wrap around as unsigned ones do."""
    one, two = count, torch.zeros_like(count)
    three = four = two
    keys = [key & _WORD, (key >> 32) & _WORD]
    for _ in range(10):
        first, second = one * _FACTORS[0], three * _FACTORS[1]
        one, two = ((second >> 32) & _WORD) ^ two ^ keys[0], second & _WORD
        three, four = ((first >> 32) & _WORD) ^ four ^ keys[1], first & _WORD
        keys = [(key + step) & _WORD for key, step in zip(keys, _KEYS, strict=True)]
    return one, two
