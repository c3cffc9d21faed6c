"""Records of the collectives that a rank of a distributed job began, as torch's flight recorder has them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from idbg.schema.decisions.dynamo import Stack

if TYPE_CHECKING:
    from idbg.schema import events


class ProcessGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process group by torch's name ("0"), what it is for ("default_pg"), and its global ranks."""

    name: str
    about: str = ""
    ranks: tuple[int, ...] = ()


class Collective(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One collective, or with `peer_to_peer` one send or receive. `number` counts those of its group, from 1.

    `inputs` and `outputs` are tensors as torch prints them ("f32[4, 8]"); `file`, `line` and `function` are the user's.
    `began` is in seconds since the epoch; `peer` is the rank that a send goes to or a receive comes from.
    """

    group: str
    number: int
    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    function: str = ""
    began: float = 0.0
    peer_to_peer: bool = False
    peer: int | None = None


@dataclass
class CollectiveLog:
    """What is known of a run's collectives: all that it `began` as far as they are recorded, in order; those that were
    `pending` when it was last looked, and the last of each group. `lost`: those that are not in `began`. `stack` is the
    main thread's at that time, the innermost line last. `recorded`: whether torch records collectives at all; else
    `counts` has how many each group began.
    """

    began: list[Collective] = field(default_factory=list)
    groups: dict[str, ProcessGroup] = field(default_factory=dict)
    pending: tuple[Collective, ...] = ()
    last: dict[str, Collective] = field(default_factory=dict)
    lost: int = 0
    stack: Stack = ()
    recorded: bool = False
    counts: dict[str, int] = field(default_factory=dict)

    def apply(self, seen: "events.CollectivesSeen") -> None:
        """Take in what was seen since the event before."""
        self.recorded = self.recorded or not seen.counts
        self.counts |= seen.counts
        self.began += seen.began
        self.groups |= {group.name: group for group in seen.groups}
        self.pending, self.stack = seen.pending, seen.stack
        self.last |= {each.group: each for each in (*seen.began, *seen.last) if not each.peer_to_peer}
        self.lost += seen.lost
