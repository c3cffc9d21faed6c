"""Records of what Inductor decides, and of where a compile's time goes: fusion, passes, caches, CUDA graphs, spans."""

from typing import Literal

import msgspec

from idbg.schema.decisions.base import Decision, Report
from idbg.schema.graphs import Part

REPORTS = (
    Report(
        "fusion",
        "what became one kernel and what did not, what each kernel does, and what is computed twice",
        "node",
        "which pairs were not fused",
        row="fusion",
    ),
    Report(
        "autotune",
        "which candidates were measured, and which won",
        "node",
        "autotuning",
        row="candidate",
        under="cache",
    ),
    Report(
        "passes",
        "what each pass did to a graph, and what the backward computes again",
        "node",
        "what passes did",
        row="pass",
    ),
    Report("cache", "what was found in which cache, and why not", "frame", "answers of caches", row="cache"),
    Report(
        "cuda_graphs", "what became a CUDA graph, and why not", "frame", "CUDA graphs", row="CUDA graph", under="cache"
    ),
    Report("time", "where the time of the compile went, and what helps", "run", "the times of the compile's parts"),
)
OpKind = Literal["loops", "reduction", "extern", "template", "nop"]
"""An extern op is a call into a library; a template is code of Inductor's (a matrix product) that others can join;
"nop" computes nothing.
"""

SILENT = ""
"""The reason of a refusal for which the scheduler gave none."""

JUDGED = "judged no better as one kernel"
"""The reason of a refusal after all that is allowed: measured slower, or layouts that conflict. Torch does not say."""


class SchedulerOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One buffer's computation as the scheduler has it: which post-grad nodes it computes, in the graph's order; over
    which loops, and of those over which it reduces, as torch's expressions; which buffers it reads and writes.
    `calls`: what an extern op calls. `graph`: which of the graphs inside of the frame's (a branch of torch.cond) these
    nodes are of, "" for the frame's own.
    """

    name: str
    kind: OpKind = "loops"
    nodes: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    calls: str = ""
    device: str = ""
    graph: str = ""


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two groups, by their numbers, that the scheduler looked at, as they were then, and did not make one. `reason` is
    its own or SILENT or JUDGED; `times`: how often, over all of their ops.
    """

    one: int
    other: int
    reason: str
    times: int = 1


class FusionLog(Decision, frozen=True, omit_defaults=True, tag="fusion"):
    """All that the scheduler decided of one graph. `groups` are names of ops that became one, in the order in which
    they run. `pairs_tried`: pairs that it looked at; `dropped`: refusals beyond those that are kept.
    """

    ops: tuple[SchedulerOp, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    refusals: tuple[Refusal, ...] = ()
    pairs_tried: int = msgspec.field(default=0, name="asked")
    dropped: int = 0
    part: Part = ""

    def slot(self, frame: str) -> tuple[str, Part]:
        return frame, self.part


Phase = Literal["pre_grad", "joint", "post_grad", "other"]
"""Inductor's phases; "other": a pass outside of them."""

BETWEEN = "between passes"
"""What changed a graph in a phase outside of all named passes goes by this name."""


class DiffRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One node before and after a pass, each as a line; "" on the side on which it is not, or stands elsewhere.

    `skipped`: how many nodes above it, that are alike on both sides, are left out.
    """

    name: str
    before: str = ""
    after: str = ""
    skipped: int = 0


class PassRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a pass that changed a graph; the `number`th of its phase.

    `by`: the function or class that it is, `file` and `line` where that is defined; `own` says that it is not torch's.
    `nodes`: how many before and after. `came`, `went`, `moved` and `changed` are names of nodes; `of` maps a node that
    came to those that it stands in the place of. `rows` are what differs, with a few nodes around it; `dropped`: rows
    beyond those that are kept.
    """

    name: str
    number: int = 0
    by: str = ""
    file: str = ""
    line: int = 0
    own: bool = False
    seconds: float | None = None
    nodes: tuple[int, int] = (0, 0)
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[DiffRow, ...] = ()
    dropped: int = 0


class PhaseRun(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="passes"):
    """One phase of passes over a graph: `ran` passes, of which `passes` changed it. `part` is known of the post-grad
    phase; `graph`: which of the graphs inside of the frame's (a branch of torch.cond) it was, "" for the frame's own.
    """

    phase: Phase
    part: Part = ""
    graph: str = ""
    ran: int = 0
    seconds: float | None = None
    nodes: tuple[int, int] = (0, 0)
    passes: tuple[PassRun, ...] = ()


CacheName = Literal["fx_graph", "aot_autograd", "autotune", "triton", "kernel"]
"""Inductor's of graphs, AOTAutograd's, that of autotuning, Triton's, and that of C++ kernels (by their source)."""


CacheOutcome = Literal["hit", "miss", "bypass", "off"]


class KeyPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """One part of what a cache's key is made of, by torch's name of it: its hash, and its value where that is short."""

    name: str
    hash: str
    value: str = ""


class Differs(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a key that is not as it was, in words ("the shape of argument 1"), and what it is and was where torch
    says so briefly.
    """

    part: str
    now: str = ""
    before: str = ""


class CacheAnswer(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="cache"):
    """What a cache answered. `reason`: why it was bypassed, is off, or did not have it. `what`: of which kernel or op,
    where there are several. `differs`: on a miss, those parts of the key that are not as in the nearest key that was
    seen before (of `nearest`: when, and which frame, in words); both empty where none was near, and `differs` alone
    where that very key was seen. `saved`: seconds that a hit saved, as torch says.
    """

    cache: CacheName
    outcome: CacheOutcome
    part: Part = ""
    key: str = ""
    reason: str = ""
    what: str = ""
    differs: tuple[Differs, ...] = ()
    nearest: str = ""
    saved: float | None = None


CudaGraphOutcome = Literal["ready", "captured", "rerecorded", "split", "skipped"]


class CudaGraph(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="cuda_graph"):
    """Whether calls of a compiled graph became a CUDA graph. "ready": it will be recorded at its second call, as torch
    warms up first; "split": `nodes` (of the post-grad graph) stay outside of it, the rest is recorded.

    `reason`: torch's own, why it was skipped, split or recorded again, with the user's line that caused it; `times`:
    how often it was recorded, or reported.
    """

    outcome: CudaGraphOutcome
    part: Part = ""
    reason: str = ""
    file: str = ""
    line: int = 0
    nodes: tuple[str, ...] = ()
    times: int = 1


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One candidate, and how long a call of it took; None where it could not be measured (`error` says why)."""

    name: str
    seconds: float | None = None
    about: str = ""
    error: str = ""


class Autotuned(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="autotune"):
    """What was measured to choose a kernel for an op ("mm"), or a configuration of a kernel; the fastest first.
    `cached`: it was not measured now, but found. `nodes` are of the post-grad graph. `chosen`: the fastest; a template
    is still held against what fusing it saves. `seconds`: that measuring took; `dropped`: choices beyond those kept.
    """

    op: str
    choices: tuple[Choice, ...]
    part: Part = ""
    chosen: str = ""
    kernel: str = ""
    nodes: tuple[str, ...] = ()
    inputs: str = ""
    seconds: float | None = None
    cached: bool = False
    dropped: int = 0


class Span(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="span"):
    """Something that took time in a compile, as torch or we timed it: a phase, a pass, the build of a kernel.

    `id` is unique in its run, `parent` the span that it is in (0: none). `began` is in seconds since the epoch;
    `seconds` is None while it lasts: the same id is recorded again when it ends. `nodes` are those of the graph before
    and after. `what` tells spans of one name apart: a kernel's name, a pass's. `thread` 0 is the one that compiles;
    what runs beside it (a compiler on a thread of torch's, a process of its pool) has others.

    `times` above 1: so many of this name, each under a millisecond, were in this parent; `seconds` is all of them, from
    the first on, and other spans lie between them.
    """

    id: int
    name: str
    began: float
    parent: int = 0
    seconds: float | None = None
    frame: str = ""
    what: str = ""
    nodes: tuple[int, int] | None = None
    thread: int = 0
    times: int = 1

    def slot(self, frame: str) -> int:
        return self.id
