"""The record of a function's graphs, with their guards, breaks and recompiles."""

import msgspec

from idbg.schema.decisions.dynamo import FailedGuard, FrameGuards, GraphBreak
from idbg.schema.graphs import Frame, Graph


class GuardedGraph(msgspec.Struct, frozen=True):
    """One compiled frame: its graph as Dynamo made it, and the guards that let it be used. `guards` is None where they
    could not be read, `graph` where the frame holds nothing to compile.
    """

    frame: Frame
    graph: Graph | None
    guards: FrameGuards | None


class Recompile(msgspec.Struct, frozen=True):
    """A frame that was compiled again: for which reason in torch's words, and which guard of which version failed."""

    frame: str
    reason: str
    failed: tuple[FailedGuard, ...]


class GuardReport(msgspec.Struct, frozen=True, kw_only=True):
    """What torch compiled in one call of a function, in order. `text` is all of it in words, and what `print` shows."""

    graphs: tuple[GuardedGraph, ...]
    breaks: tuple[GraphBreak, ...]
    recompiles: tuple[Recompile, ...]
    text: str

    def __str__(self) -> str:
        return self.text
