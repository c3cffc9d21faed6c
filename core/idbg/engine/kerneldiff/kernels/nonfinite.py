"""Find the first launch that writes NaN or an infinity where eager's value is finite."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor

from idbg.engine.kerneldiff.tensors import nonfinite
from idbg.engine.kerneldiff.tensors.nonfinite import FirstNonfinite
from idbg.schema.diff import KernelError
from idbg.schema.faults import NanOrigin


@dataclass(frozen=True)
class NewNonfinite:
    """A nonfinite value in a buffer that holds this node, where eager's value is finite."""

    node: str
    found: FirstNonfinite
    elements: int
    dtype: str

    def origin(self, launch: KernelError, file: str, line: int) -> NanOrigin:
        """The record of it; `file` and `line` are the node's."""
        return NanOrigin(
            side="compiled",
            what=self.found.what,
            phase="backward" if launch.part == "backward" else "forward",
            dtype=self.dtype,
            index=self.found.index,
            count=self.found.count,
            elements=self.elements,
            file=file,
            line=line,
            frame=launch.frame,
            part=launch.part,
            kernel=launch.name,
            handle=launch.handle,
            wrapper_line=launch.wrapper_line,
            node=self.node,
        )


def new_nonfinite(node: str, value: Tensor, eagers: object) -> Iterator[NewNonfinite]:
    """The nonfinite values that the compiled value has and eager's, of the same shape, has not."""
    if (
        not nonfinite.can_hold(value)
        or not value.numel()
        or nonfinite.is_finite(value)
        or not isinstance(eagers, Tensor)
    ):
        return
    for what in nonfinite.NAN_KINDS:
        ours = nonfinite.mask(value, what)
        if nonfinite.can_hold(eagers):
            ours = ours & ~nonfinite.mask(eagers, what)
        if (found := nonfinite.first_of(ours, what)) is not None:
            yield NewNonfinite(node, found, value.numel(), str(value.dtype).removeprefix("torch."))


def first_of_each(origins: Iterable[NanOrigin]) -> tuple[NanOrigin, ...]:
    """The first NaN and the first infinity, in order."""
    first: dict[str, NanOrigin] = {}
    for origin in origins:
        first.setdefault(origin.what, origin)
    return tuple(first.values())
