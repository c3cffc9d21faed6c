"""Describe the tensors that a launch gets: dtype, sizes, strides, alignment."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from idbg.schema.faults import MOST_ALIGNED, LaunchArgument


def arguments(names: Iterable[str], values: Mapping[str, object]) -> tuple[LaunchArgument, ...]:
    """The tensors among these names, each once, in order. Their values are not read: that raises on a lost device."""
    named = ((name, values.get(name)) for name in dict.fromkeys(names))
    return tuple(argument(name, value) for name, value in named if isinstance(value, Tensor))


def argument(name: str, value: Tensor) -> LaunchArgument:
    """One tensor under this name."""
    strides = value.stride() if value.layout == torch.strided else ()
    return LaunchArgument(
        name,
        str(value.dtype).removeprefix("torch."),
        tuple(map(int, value.shape)),
        tuple(map(int, strides)),
        str(value.device),
        alignment(value),
    )


def alignment(value: Tensor) -> int:
    """The largest power of two, up to MOST_ALIGNED, that divides its address; 0 where it has none."""
    try:
        address = value.data_ptr()
    except RuntimeError:  # it has no storage
        return 0
    return min(address & -address, MOST_ALIGNED)
