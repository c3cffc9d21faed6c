"""Records of crashes, and of where NaN and infinities first appear.

Nothing here imports torch.
"""

import signal
from typing import Literal

import msgspec

from idbg.schema.graphs import DTYPES, GraphId, Part

MOST_ALIGNED = 4096
"""Bytes: more than a page is not distinguished, and no kernel needs it."""


class LaunchArgument(msgspec.Struct, frozen=True):
    """A tensor as a launch was given it, under the wrapper's name for it; shape and stride in elements.

    `alignment` is the largest power of two, up to MOST_ALIGNED, by which its address can be divided, in bytes; 0 where
    it has no memory.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: str
    alignment: int

    def __str__(self) -> str:
        short = DTYPES.get(self.dtype, (self.dtype, 0))[0]
        return (
            f"{short}[{', '.join(map(str, self.shape))}], strides [{', '.join(map(str, self.stride))}], {self.device}"
        )


class CrashSite(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program was as it crashed. `cause`: the signal ("SIGSEGV"), or the type of what was raised.

    With a `kernel` it was the launch at `wrapper_line` (1-based) of the output code in the file `wrapper`, which stands
    for these `nodes` of the post-grad graph of (`frame`, `part`); without one it was in no launch. `file` and `line`
    are the user's, of the nodes where these are known. `arguments` are the launch's as it crashed ("crash"), or as they
    were when it was launched first ("first launch"). `late`: a device reports its errors late, and it was this launch
    or one before it.
    """

    cause: str
    kernel: str = ""
    handle: str = ""
    frame: str = ""
    part: Part = ""
    wrapper: str = ""
    wrapper_line: int = 0
    nodes: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    arguments: tuple[LaunchArgument, ...] = ()
    arguments_of: Literal["", "crash", "first launch"] = ""
    late: bool = False

    @property
    def graph(self) -> GraphId | None:
        """The graph that `nodes` are of; None where it was in no launch, or that is not known."""
        return GraphId(self.frame, "post_grad", self.part) if self.frame else None


Phase = Literal["given", "forward", "backward"]


class NanOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where NaN, or an infinity, first appears on one side of a comparison.

    Of "eager": an op that makes one of operands that hold none, `op` of `operands` ("log", "-0.2"), at the user's
    `file` and `line`: in the backward that of the forward op whose gradient it is, which is `node`. "given": it was in
    the input or parameter `name` before anything ran. Of "compiled": the first launch of which an output has one where
    eager's value has none: `kernel` and its `handle`, the output's post-grad `node`. `count` is of so many
    `elements`, the first at `index`. `from_infinity`: of a NaN, its operands held infinities.
    """

    side: Literal["eager", "compiled"]
    what: Literal["nan", "inf"]
    phase: Phase
    name: str = ""
    op: str = ""
    operands: str = ""
    from_infinity: bool = False
    dtype: str = ""
    index: tuple[int, ...] = ()
    count: int = 0
    elements: int = 0
    file: str = ""
    line: int = 0
    frame: str = ""
    part: Part = ""
    kernel: str = ""
    handle: str = ""
    wrapper_line: int = 0
    node: str = ""

    @property
    def graph(self) -> GraphId | None:
        """The graph that `node` is of; None of eager's, which has none."""
        return GraphId(self.frame, "post_grad", self.part) if self.frame else None


def signal_name(number: int) -> str:
    """The name of a signal ("SIGSEGV")."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
