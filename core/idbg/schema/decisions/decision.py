"""The record of one decision about a node, a kernel or a line, whatever its kind."""

from typing import Literal

import msgspec

from idbg.schema.graphs import NodeId

Kind = Literal["break", "recompile", "guard", "skip", "pass", "fusion", "cache", "cuda graph", "autotune", "partition"]


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision in words, and what it is about: nodes, kernels (frame, name), or a line of the user's."""

    kind: Kind
    words: str
    why: str = ""
    frame: str = ""
    file: str = ""
    line: int = 0
    nodes: tuple[NodeId, ...] = ()
    kernels: tuple[tuple[str, str], ...] = ()
