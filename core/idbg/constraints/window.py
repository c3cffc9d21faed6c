"""Find windows of convolutions and pools that are too large for the hardware."""

import re
from collections.abc import Iterator, Sequence
from typing import Self

from msgspec.structs import replace

from idbg.analysis import ops
from idbg.constraints.base import BadValue, Constraint, Finding
from idbg.constraints.facts import GraphFacts, NodeSignature
from idbg.schema.graphs import hint_of


class Window(Constraint, frozen=True, tag="window"):
    """Windows of convolutions and pools may be `max_height` high and have `max_area` elements, dilation counted in.

    With `dilated`, only windows with a dilation above 1 are checked.
    """

    max_height: int | None = None
    max_area: int | None = None
    dilated: bool = False

    def validate(self) -> None:
        for key in ("max_height", "max_area"):
            limit = getattr(self, key)
            if limit is not None and limit < 1:
                raise BadValue(key, f"{key} is {limit}; it must be 1 or more", hint="leave it out for no limit")
        if self.max_height is None and self.max_area is None:
            raise BadValue("kind", "this rule needs max_height or max_area", hint="add max_height = 64")

    def check(self, signature: NodeSignature) -> Iterator[Finding]:
        """A window that is too high, or has too many elements; calls without a window are left alone."""
        height, area, stretched = _extent(signature)
        if not area or (self.dilated and not stretched):
            return
        if self.max_height is not None and height > self.max_height:
            yield Finding(f"the window is {height} high", f"at most {self.max_height}", "use several smaller windows")
        if self.max_area is not None and area > self.max_area:
            yield Finding(f"the window has {area} elements", f"at most {self.max_area}", "use several smaller windows")

    def relaxed(self, signatures: Sequence[NodeSignature], graphs: Sequence[GraphFacts] = ()) -> Self | None:
        """The limits that are given, raised to the largest window."""
        extents = [_extent(signature) for signature in signatures]
        height = max((height for height, _, _ in extents), default=0)
        area = max((area for _, area, _ in extents), default=0)
        return replace(
            self,
            max_height=None if self.max_height is None else max(self.max_height, height),
            max_area=None if self.max_area is None else max(self.max_area, area),
        )


def _extent(signature: NodeSignature) -> tuple[int, int, bool]:
    """Height and area of the window, with its dilation, and whether it has one; zeros for other calls."""
    names = ops.names(signature)
    if not names:
        return 0, 0, False
    if "convolution" in names:
        if len(signature.operands) < 2:
            return 0, 0, False
        window = [hint_of(dim) or 0 for dim in signature.operands[1].tensor.shape[2:]]
    else:
        window = _argument(signature.args, "kernel_size")
    if not window:
        return 0, 0, False
    dilation = _argument(signature.args, "dilation") or [1]
    dilation = dilation * len(window) if len(dilation) == 1 else dilation
    sizes = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=False)]
    area = 1
    for size in sizes:
        area *= size
    return (sizes[0] if len(sizes) > 1 else 1), area, any(step > 1 for step in dilation)


def _argument(args: str, key: str) -> list[int]:
    listed = re.search(rf"{key} = \[([\d, ]+)\]", args)
    return [int(size) for size in listed[1].split(",")] if listed else []
