"""Compute a tensor's size at its hints and at most, and write its dimensions."""

from idbg.schema.graphs import Dim, Sym, TensorMeta, hint_of


def stored_bytes(tensor: TensorMeta) -> int | None:
    """Bytes that the tensor's elements take in memory; None if a hint is missing.

    A dimension of stride 0 (an expanded one) repeats the same memory and takes none of its own.
    """
    strides = tensor.stride if len(tensor.stride) == len(tensor.shape) else (1,) * len(tensor.shape)
    total = tensor.itemsize
    for dim, stride in zip(tensor.shape, strides, strict=True):
        size = hint_of(dim)
        if size is None:
            return None
        if size == 0 or stride != 0:
            total *= size
    return total


def most_bytes(tensor: TensorMeta) -> int | None:
    """`stored_bytes` with each symbol at the end of its range; None where a range is open."""
    shape = tuple(dim if isinstance(dim, int) else dim.high for dim in tensor.shape)
    known = tuple(size for size in shape if size is not None)
    if len(known) != len(shape):
        return None
    stride = tuple(0 if step == 0 else 1 for step in tensor.stride)
    return stored_bytes(TensorMeta(tensor.dtype, known, stride))


def at_hints(tensor: TensorMeta) -> str:
    """ " (with s0 = 8)" where the tensor's size stands on the hints of symbols."""
    symbols = [f"{dim} = {dim.hint}" for dim in tensor.shape if isinstance(dim, Sym)]
    return f" (with {', '.join(dict.fromkeys(symbols))})" if symbols else ""


def spelled_dim(dim: Dim) -> str:
    """ "10"; for a symbol what is known of it: "s0 (hint 10, range 2 to 64)"."""
    if isinstance(dim, int):
        return str(dim)
    hint = "no hint" if dim.hint is None else f"hint {dim.hint}"
    return f"{dim} ({hint}{_range(dim)})"


def _range(dim: Sym) -> str:
    if dim.low is None and dim.high is None:
        return ""
    if dim.high is None:
        return f", {dim.low} or more"
    return f", range {dim.low if dim.low is not None else 0} to {dim.high}"
