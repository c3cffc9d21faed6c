"""Which single tensors are larger than the hardware's memory for one?"""

import math
from collections.abc import Iterator

from idbg.constraints.base import BadValue, Constraint, Finding, labelled
from idbg.records import Node, Sym, TensorMeta, hint_of


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


class Memory(Constraint, frozen=True, tag="memory"):
    """No tensor may take more than `max_bytes` (an integer, or inf for no limit).

    Symbolic sizes are taken at their hints; a tensor with a size that has no hint is not checked.
    """

    max_bytes: int | float

    def validate(self) -> None:
        if math.isnan(self.max_bytes) or self.max_bytes < 0:
            hint = "a number of bytes, or inf for no limit"
            raise BadValue("max_bytes", f"max_bytes is {self.max_bytes}; it must be 0 or more", hint=hint)

    def check(self, node: Node) -> Iterator[Finding]:
        for label, tensor in labelled(node):
            size = stored_bytes(tensor)
            if size is not None and size > self.max_bytes:
                yield Finding(f"{label}{_bytes(size)}{_at_hints(tensor)}", self._wanted(), self._fix(size))

    def _wanted(self) -> str:
        return f"at most {_bytes(int(self.max_bytes))}"

    def _fix(self, size: int) -> str:
        if self.max_bytes < 1:
            return 'raise "max_bytes": nothing fits into 0 bytes'
        pieces = -(-size // int(self.max_bytes))
        return f"split it: {pieces} pieces or more (torch.chunk), or a smaller dtype or batch"


def _bytes(count: int) -> str:
    """Exact bytes, and from 1 MiB on a rounded figure that can be read."""
    if count < 2**20:
        return f"{count} bytes"
    if count < 2**30:
        return f"{count} bytes ({count / 2**20:.1f} MiB)"
    return f"{count} bytes ({count / 2**30:.1f} GiB)"


def _at_hints(tensor: TensorMeta) -> str:
    symbols = [f"{dim} = {dim.hint}" for dim in tensor.shape if isinstance(dim, Sym)]
    return f" (with {', '.join(dict.fromkeys(symbols))})" if symbols else ""
