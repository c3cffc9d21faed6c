"""Which tensor dimensions are not a multiple of what the hardware wants?"""

from collections.abc import Iterable, Iterator
from typing import Literal

from idbg.constraints.base import BadValue, Constraint, Finding, labelled
from idbg.records import Dim, Node, TensorMeta, hint_of


class Alignment(Constraint, frozen=True, tag="alignment"):
    """Sizes of `dims` must be multiples of `multiple` elements.

    `dims` is "all", "last", or positions (negative ones count from the end; those that a tensor does not have are
    skipped). A symbolic size is checked at its hint. One without a hint is known only when the program runs, so it
    breaks the rule.
    """

    multiple: int
    dims: Literal["all", "last"] | tuple[int, ...] = "all"

    def validate(self) -> None:
        if self.multiple < 1:
            raise BadValue("multiple", f"multiple is {self.multiple}; it must be 1 or more", hint="1 allows every size")

    def check(self, node: Node) -> Iterator[Finding]:
        if self.multiple == 1:
            return
        for label, tensor in labelled(node):
            bad = [(position, dim) for position, dim in self._concerned(tensor) if not self._aligned(dim)]
            if bad:
                found = ", ".join([f"dim {position} is {_spelled(dim)}" for position, dim in bad])
                yield Finding(label + found, f"a multiple of {self.multiple}", self._fix(bad))

    def _concerned(self, tensor: TensorMeta) -> Iterable[tuple[int, Dim]]:
        shape = tensor.shape
        if self.dims == "all" or not shape:
            return enumerate(shape)
        rank = len(shape)
        wanted = (-1,) if self.dims == "last" else self.dims
        positions = sorted({position % rank for position in wanted if -rank <= position < rank})
        return [(position, shape[position]) for position in positions]

    def _aligned(self, dim: Dim) -> bool:
        size = dim if isinstance(dim, int) else dim.hint
        return size is not None and size % self.multiple == 0

    def _fix(self, bad: list[tuple[int, Dim]]) -> str:
        pads = []
        for position, dim in bad:
            size = hint_of(dim)
            if size is None:
                return "give the size a bound: pad to a fixed size before this point"
            pads.append((position, -(-size // self.multiple) * self.multiple))
        if len(pads) == 1:
            return f"pad to {pads[0][1]}"
        return "pad " + ", ".join([f"dim {position} to {size}" for position, size in pads])


def _spelled(dim: Dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    return f"{dim} (no hint)" if dim.hint is None else f"{dim} (hint {dim.hint})"
