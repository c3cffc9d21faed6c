"""Find single tensors that are larger than the hardware's memory for one."""

import math
from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.analysis.sizes import at_hints, most_bytes, stored_bytes
from idbg.constraints.base import BadValue, Finding, TensorRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.format.amounts import exact_size
from idbg.schema.graphs import Role, TensorMeta


class Memory(TensorRule, frozen=True, tag="memory"):
    """No tensor may take more than `max_bytes` (an integer, or inf for no limit).

    Symbolic sizes are taken at their hints, and where their ranges have an end, at that too. A tensor with a size that
    has neither is not checked.
    """

    max_bytes: int | float

    def validate(self) -> None:
        at_least_0(self.max_bytes)

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """A tensor of too many bytes at its sizes' hints, or else at the ends of their ranges."""
        size, most = stored_bytes(tensor), most_bytes(tensor)
        wanted = f"at most {exact_size(int(self.max_bytes))}" if self.max_bytes != math.inf else ""
        if size is not None and size > self.max_bytes:
            yield Finding(f"{exact_size(size)}{at_hints(tensor)}", wanted, self._fix(size))
        elif most is not None and most > self.max_bytes:
            yield Finding(f"up to {exact_size(most)}, at the end of its sizes' ranges", wanted, self._fix(most))

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """Room for the largest tensor."""
        return replace(self, max_bytes=max(_at_most(tensor) for tensor in self.concerned(signatures)))

    def _fix(self, size: int) -> str:
        if self.max_bytes < 1:
            return 'raise "max_bytes": nothing fits into 0 bytes'
        pieces = -(-size // int(self.max_bytes))
        return f"split it: {pieces} pieces or more (torch.chunk), or a smaller dtype or batch"


def _at_most(tensor: TensorMeta) -> int:
    return max(stored_bytes(tensor) or 0, most_bytes(tensor) or 0)


def at_least_0(max_bytes: int | float) -> None:
    """Raise BadValue unless this is a limit in bytes."""
    if math.isnan(max_bytes) or max_bytes < 0:
        hint = "a number of bytes, or inf for no limit"
        raise BadValue("max_bytes", f"max_bytes is {max_bytes}; it must be 0 or more", hint=hint)
