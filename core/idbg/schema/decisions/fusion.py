"""What did Inductor's scheduler make one kernel of, what did it try, and why not?"""

import msgspec


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the scheduler took for one at its end: its own name ("op0_op1"), the post-grad nodes that it computes, and
    the kernel that it became ("" where none is known).
    """

    name: str
    nodes: tuple[str, ...]
    kernel: str = ""


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Two that the scheduler looked at and did not make one, and its own reason. `one` and `other` are post-grad nodes;
    `times`: how often it said so, in how many rounds or templates.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    reason: str
    times: int = 1


class FusionLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that the scheduler decided of one graph. `dropped`: refusals beyond those that are kept."""

    groups: tuple[Group, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    dropped: int = 0
