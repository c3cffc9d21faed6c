"""Records of code: what Inductor wrote, what the compilers below it made of that, and other compilers' stages."""

from typing import Literal

import msgspec

from idbg.schema.graphs import GraphId, Part

StageOrigin = Literal["artifact", "dump", "call", "adapter"]
LineLinks = tuple[tuple[int, tuple[str, ...]], ...]
"""Lines of a text (1-based, in order) with the names of the nodes that each belongs to."""
StageKey = tuple[str, Part, str, str]
"""What distinguishes a compiler's stage from the others of its run: its frame, its part, its compiler and its name."""


class KernelCall(msgspec.Struct, frozen=True):
    """One launch in the wrapper: Inductor's debug handle, the 1-based wrapper line, the post-grad nodes it computes."""

    handle: str
    line: int
    nodes: tuple[str, ...] = ()


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """One generated kernel or one extern op.

    `part` is the graph it was generated for; `line` is its 1-based place in the wrapper. An extern kernel has no
    source of its own: `source` is empty.
    """

    frame: str
    part: Part
    name: str
    language: str
    source: str = ""
    line: int = 0
    calls: tuple[KernelCall, ...] = ()

    @property
    def key(self) -> tuple[str, Part, str]:
        """What distinguishes it from the other kernels of its run: its frame, its part and its name."""
        return self.frame, self.part, self.name

    @property
    def source_language(self) -> str:
        """What its source is written in: Python, where that is the statement of the wrapper that defines it."""
        return "python" if f"\n{self.name} = " in f"\n{self.source}" else self.language

    @property
    def nodes(self) -> tuple[str, ...]:
        """Post-grad nodes it computes, over all its calls, in order of first mention."""
        return tuple(dict.fromkeys(name for call in self.calls for name in call.nodes))


class LoweredText(msgspec.Struct, frozen=True):
    """A kernel as one of the compilers below Inductor has it: "TTIR", "PTX", "SASS", "assembly"."""

    name: str
    language: str
    text: str


class Resources(msgspec.Struct, frozen=True):
    """What a Triton kernel takes of a GPU: registers and spills of a thread, shared memory of a block.

    `occupancy` is the part of a multiprocessor's threads that can run at once.
    """

    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    warps: int | None = None
    occupancy: float | None = None


class Lowered(msgspec.Struct, frozen=True):
    """What a kernel was lowered to, from the highest to the lowest; `resources` is None of a kernel on a CPU."""

    texts: tuple[LoweredText, ...]
    resources: Resources | None = None


class OutputCode(msgspec.Struct, frozen=True):
    """Inductor's output for one graph: the wrapper's text and the kernels found in it."""

    frame: str
    part: Part
    text: str
    kernels: tuple[Kernel, ...] = ()


class CompilerStage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What another compiler made of one graph, at one of its stages: "flow" of iree, "after transformations" of
    openvino.

    `graph` is the one whose nodes `links` names; None where no line is linked. `origin`: an artifact of torch's trace,
    a dump that a reader read, a call of idbg.stage, or an adapter. A long text is not in `text` but in `file`, which is
    relative to the session's folder. `size` is in bytes, of the whole text; a `binary` has no text.
    """

    frame: str = ""
    part: Part = ""
    compiler: str
    name: str
    language: str = ""
    text: str = ""
    graph: GraphId | None = None
    links: LineLinks = ()
    origin: StageOrigin
    file: str = ""
    size: int = 0
    binary: bool = False

    @property
    def key(self) -> StageKey:
        """What distinguishes it from the other stages of its run."""
        return self.frame, self.part, self.compiler, self.name
