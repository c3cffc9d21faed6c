"""Which tensors lie in memory in an order that the hardware does not take?"""

from collections.abc import Iterator
from typing import Literal

from idbg.constraints.base import BadValue, Constraint, Finding, labelled
from idbg.records import Node, TensorMeta, hint_of

Format = Literal["contiguous", "channels_last", "channels_last_3d"]

# format -> (the rank that it needs, 0 for any; the dimensions from the innermost out, empty for last to first)
_ORDERS: dict[Format, tuple[int, tuple[int, ...]]] = {
    "contiguous": (0, ()),
    "channels_last": (4, (1, 3, 2, 0)),
    "channels_last_3d": (5, (1, 4, 3, 2, 0)),
}


def is_laid_out(tensor: TensorMeta, layout: Format) -> bool | None:
    """Whether the tensor has this memory format, as torch.Tensor.is_contiguous(memory_format=...) has it.

    Strides of dimensions of size 1 do not matter. An empty tensor has every format of its rank (torch says so of
    "contiguous" only). Symbols are taken at their hints; None if a missing hint, or a stride that was not recorded,
    leaves it open.
    """
    rank, order = _ORDERS[layout]
    if rank and len(tensor.shape) != rank:
        return False
    if len(tensor.stride) != len(tensor.shape):
        return None
    if tensor.numel == 0:
        return True
    expected: int | None = 1
    for position in order or range(len(tensor.shape) - 1, -1, -1):
        size, stride = hint_of(tensor.shape[position]), hint_of(tensor.stride[position])
        if size == 1:
            continue
        if expected is None or stride is None:
            return None
        if stride != expected:
            return False
        expected = None if size is None else expected * size
    return True


class Layout(Constraint, frozen=True, tag="layout"):
    """Every tensor must have one of `formats`: "contiguous", "channels_last" (4-d), "channels_last_3d" (5-d).

    Weights, and what is computed from weights alone (the transpose in a Linear), are checked with `weights` only: a
    compiler lays them out once, when the program is loaded.
    """

    formats: tuple[Format, ...] = ("contiguous",)
    weights: bool = False

    def validate(self) -> None:
        if not self.formats:
            raise BadValue("formats", "formats is empty: no tensor could be accepted", hint='try ["contiguous"]')

    def check(self, node: Node) -> Iterator[Finding]:
        if node.role in ("weight", "buffer") and not self.weights:
            return
        for label, tensor in labelled(node):
            if all(is_laid_out(tensor, layout) is False for layout in self.formats):
                stride = ", ".join(map(str, tensor.stride))
                yield Finding(f"{label}stride is ({stride})", " or ".join(self.formats), self._fix(node, tensor))

    def _fix(self, node: Node, tensor: TensorMeta) -> str:
        rank = len(tensor.shape)
        usable = [layout for layout in self.formats if _ORDERS[layout][0] in (0, rank)]
        if not usable:
            return f'no format in "formats" exists for a {rank}-d tensor: add "contiguous"'
        call = ".contiguous()" if usable[0] == "contiguous" else f".contiguous(memory_format=torch.{usable[0]})"
        if node.op == "placeholder":
            return f"pass it through {call} first"
        return f"copy it with {call}, or leave out the view that reorders it"
