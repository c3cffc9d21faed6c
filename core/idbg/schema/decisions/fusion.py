"""Records of Inductor's fusion decisions: what was fused, what was tried, and why not."""

from typing import Literal

import msgspec

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


class FusionLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that the scheduler decided of one graph. `groups` are names of ops that became one, in the order in which
    they run. `pairs_tried`: pairs that it looked at; `dropped`: refusals beyond those that are kept.
    """

    ops: tuple[SchedulerOp, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    refusals: tuple[Refusal, ...] = ()
    pairs_tried: int = msgspec.field(default=0, name="asked")
    dropped: int = 0
