"""Map where in one slice of an output the error lies."""

import math

import torch
from torch import Tensor

from idbg.schema.diff import LARGEST, ErrorMap
from idbg.schema.errors import BadInput

ROWS, COLUMNS = 64, 128


def error_map(name: str, reference: Tensor, test: Tensor, index: tuple[int, ...]) -> ErrorMap:
    """The largest |test - reference| in each of at most ROWS x COLUMNS blocks of the slice at `index`.

    `index` is of the dims before the last two; one that is too short is filled with zeros. Raises BadInput where the
    tensors cannot be compared element by element, or have no such slice.
    """
    if reference.shape != test.shape or not reference.numel():
        raise BadInput(f"{name} has no error to map", hint="its shapes differ, or it is empty")
    leading = reference.shape[:-2]
    index = (*index, *[0] * (len(leading) - len(index)))[: len(leading)]
    if any(not 0 <= at < size for at, size in zip(index, leading, strict=True)):
        raise BadInput(f"{name} has no slice {list(index)}", hint=f"its leading dims are {list(leading)}")
    one, other = (_matrix(side[index] if index else side) for side in (reference, test))
    error = (other - one).abs()
    finite = torch.isfinite(one) & torch.isfinite(other)
    same = (one == other) | (torch.isnan(one) & torch.isnan(other))
    error = torch.where(same, 0.0, torch.where(finite, error, LARGEST)).clamp(max=LARGEST)
    rows, columns = error.shape
    return ErrorMap(name, index, (rows, columns), tuple(map(tuple, _largest(error).tolist())))


def _matrix(slice_: Tensor) -> Tensor:
    wide = torch.complex128 if slice_.is_complex() else torch.float64
    return slice_.detach().to("cpu", wide).reshape(-1, slice_.shape[-1] if slice_.dim() else 1)


def _largest(error: Tensor) -> Tensor:
    """The largest element of each block; blocks are all of one size, but for the last ones."""
    rows, columns = (math.ceil(size / most) for size, most in zip(error.shape, (ROWS, COLUMNS), strict=True))
    return torch.nn.functional.max_pool2d(error[None], (rows, columns), ceil_mode=True)[0]
