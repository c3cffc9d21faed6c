"""Find tensors with a memory layout that the hardware does not support."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal, Self, get_args

from msgspec.structs import replace

from idbg.constraints.base import BadValue, Constraint, Finding, TensorRule
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import Role, TensorMeta, hint_of

Format = Literal["contiguous", "channels_last", "channels_last_3d", "dense", "innermost"]

# format -> (the rank that it needs, 0 for any; the dimensions from the innermost out, empty for last to first)
_ORDERS: dict[Format, tuple[int, tuple[int, ...]]] = {
    "contiguous": (0, ()),
    "channels_last": (4, (1, 3, 2, 0)),
    "channels_last_3d": (5, (1, 4, 3, 2, 0)),
}


def is_laid_out(tensor: TensorMeta, layout: Format) -> bool | None:
    """Whether the tensor has this memory format, as torch.Tensor.is_contiguous(memory_format=...) has it.

    "dense" is any order of the dimensions without gaps or overlaps; "innermost" a last dimension whose elements lie
    together. Strides of dimensions of size 1 do not matter. An empty tensor has every format of its rank (torch says so
    of "contiguous" only). Symbols are taken at their hints; None if a missing hint, or a stride that was not recorded,
    leaves it open.
    """
    rank, order = _ORDERS.get(layout, (0, ()))
    if rank and len(tensor.shape) != rank:
        return False
    if len(tensor.stride) != len(tensor.shape):
        return None
    if tensor.numel == 0 or not tensor.shape:
        return True
    if layout == "innermost":
        return hint_of(tensor.shape[-1]) == 1 or hint_of(tensor.stride[-1]) == 1
    if layout == "dense":
        strides = [hint_of(stride) for stride in tensor.stride]
        if None in strides:
            return None
        order = tuple(sorted(range(len(tensor.shape)), key=lambda place: strides[place] or 0))
    return _follows(tensor, order or range(len(tensor.shape) - 1, -1, -1))


def _follows(tensor: TensorMeta, order: Sequence[int]) -> bool | None:
    """Whether the dimensions lie in this order, the innermost first, without gaps."""
    expected: int | None = 1
    for position in order:
        size, stride = hint_of(tensor.shape[position]), hint_of(tensor.stride[position])
        if size == 1:
            continue
        if expected is None or stride is None:
            return None
        if stride != expected:
            return False
        expected = None if size is None else expected * size
    return True


class Layout(TensorRule, frozen=True, tag="layout"):
    """Every tensor must have one of `formats`: "contiguous", "channels_last" (4-d), "channels_last_3d" (5-d), "dense"
    (any order without gaps), "innermost" (the last dimension's elements lie together).

    Weights, and what is computed from weights alone (the transpose in a Linear), are checked with `weights` only: a
    compiler lays them out once, when the program is loaded.
    """

    formats: tuple[Format, ...] = ("contiguous",)
    weights: bool = False

    def validate(self) -> None:
        """One format at least is named."""
        if not self.formats:
            raise BadValue("formats", "formats is empty: no tensor could be accepted", hint='try ["contiguous"]')

    def check_tensor(self, tensor: TensorMeta, role: Role, signature: NodeSignature) -> Iterator[Finding]:
        """A stride that has none of the formats; one that is not known is no finding."""
        if role in ("weight", "buffer") and not self.weights:
            return
        if all(is_laid_out(tensor, layout) is False for layout in self.formats):
            stride = ", ".join(map(str, tensor.stride))
            yield Finding(f"stride is ({stride})", " or ".join(self.formats), self._fix(signature, tensor))

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The fewest more formats, of those that there are, that take what the others do not."""
        missing = [each for each in get_args(Format) if each not in self.formats]
        for count in range(1, len(missing) + 1):
            for more in combinations(missing, count):
                wider = replace(self, formats=(*self.formats, *more))
                if not any(True for signature in signatures for _ in wider.check(signature)):
                    return wider
        return None

    def contradicts(self, other: Constraint) -> str:
        """Two lists of formats with nothing in common; what other formats can satisfy is not known."""
        if not isinstance(other, Layout) or {"dense", "innermost"} & {*self.formats, *other.formats}:
            return ""
        return "" if set(self.formats) & set(other.formats) else "they allow no format in common"

    def _fix(self, signature: NodeSignature, tensor: TensorMeta) -> str:
        rank = len(tensor.shape)
        usable = [layout for layout in self.formats if _ORDERS.get(layout, (0, ()))[0] in (0, rank)]
        if not usable:
            return f'no format in "formats" exists for a {rank}-d tensor: add "contiguous"'
        last = usable[0] if usable[0].startswith("channels") else ""
        call = f".contiguous(memory_format=torch.{last})" if last else ".contiguous()"
        if signature.op == "placeholder":
            return f"pass it through {call} first"
        return f"copy it with {call}, or leave out the view that reorders it"
