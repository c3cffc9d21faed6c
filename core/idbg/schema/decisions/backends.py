"""Records of what a backend of another package does with a graph: what it compiles, and what it leaves to eager."""

from typing import Literal

import msgspec

from idbg.schema.decisions.base import Decision, Report

REPORTS = (
    Report(
        "splits",
        "what a backend compiles of each graph, what it leaves to eager, why, and what that costs",
        "node",
        "which nodes a backend takes",
        row="node in eager",
        under="fusion",
        finding=3,
        has_words=True,
    ),
    Report("stages", "what other compilers made of the graphs, stage by stage", "run"),
)
NativeReason = Literal["unsupported", "alone", "fallback", "host"]


class NativeCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of the backend's graph that eager runs. "unsupported": the backend does not have the op; "alone": it does,
    but makes no partition of a single call; "fallback": it compiled the graph, or its partition, in vain; "host": its
    adapter leaves it to the host. `detail` is the backend's own reason; `file` and `line` are the user's.
    """

    name: str
    target: str
    why: NativeReason
    detail: str = ""
    file: str = ""
    line: int = 0


class GraphSplit(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="split"):
    """How the package `backend` split the calls of one of its graphs: each of `compiled` is a partition that it
    compiles, `native` is what eager runs. `number` counts the splits of a run. Elements of tuples are left out.
    """

    number: int
    backend: str
    compiled: tuple[tuple[str, ...], ...]
    native: tuple[NativeCall, ...]

    @property
    def calls(self) -> int:
        return sum(map(len, self.compiled)) + len(self.native)


class SplitCalls(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="split_calls"):
    """The calls of the split graph `number` in a run but the first, in which backends compile: how many, their seconds,
    and those outside of the partitions (None: a device other than the CPU may still be at work). `failed`: the
    partitions that eager ran all the same, by their index, and the backend's message.
    """

    number: int
    calls: int
    seconds: float | None = None
    native_seconds: float | None = None
    failed: tuple[tuple[int, str], ...] = ()

    def slot(self, frame: str) -> int:
        return self.number
