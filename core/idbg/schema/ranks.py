"""Records of what the ranks of a distributed job are compared by, and of how they differ."""

from typing import Literal

import msgspec

from idbg.schema.collectives import Collective, ProcessGroup
from idbg.schema.decisions.dynamo import StackLine
from idbg.schema.diff import Numbers
from idbg.schema.node_values import CallValues, NodeValue
from idbg.schema.remarks import Remark

DIGEST_FORMAT = 2
"""Of digest.json: one of another format is made again."""

Aspect = Literal["end", "graphs", "guards", "recompile", "breaks", "kernels", "caches"]
"""In what the same compile of two ranks can differ."""

_NumbersKind = Literal["numbers", "replica", "result", "node"]
_CollectiveKind = Literal["wait", "collective", "count"]
DifferenceKind = Literal["ended", _CollectiveKind, "absent", "graph", "constants", "aspect", "time", _NumbersKind]
"""A rank that failed or was killed; one that waits for others; another collective; another number of
collectives, where they are not recorded; a frame that is not compiled;
another graph, or the same with other numbers; another guard, break, kernel, ...; a compile that takes longer; compiled
numbers that are wrong in a rank; a parameter or buffer that is not the same in all replicas; another result of a
collective; a node with another value, whose inputs have the same.
"""


class Fingerprint(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Of `count` things: `whole` is equal for equal ones, `form` also where numbers in them alone differ.

    Addresses, device indices and paths of temporary files are in neither.
    """

    whole: str
    form: str
    count: int = 0


class NodePlace(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A node of a Dynamo graph: the nodes that it reads, and the user's line."""

    name: str
    inputs: tuple[str, ...] = ()
    file: str = ""
    line: int = 0


class FrameDigest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one compile of a function is compared by. `path` is its file as each host has it. `nth`: it is the nth
    compile of this code, from 0. `graphs` are by stage and part ("post_grad forward"); `recompiled`: the guard that
    failed. `values` are those of the Dynamo graph's `nodes`, where numbers are compared.
    """

    id: str
    function: str
    file: str = ""
    path: str = ""
    line: int = 0
    nth: int = 0
    end: str = ""
    seconds: float | None = None
    graphs: tuple[tuple[str, Fingerprint], ...] = ()
    guards: Fingerprint | None = None
    kernels: Fingerprint | None = None
    recompiled: str = ""
    breaks: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    nodes: tuple[NodePlace, ...] = ()
    values: tuple[CallValues, ...] = ()

    @property
    def key(self) -> tuple[str, int, str, int]:
        """What identifies the compile in all ranks."""
        return self.path, self.line, self.function, self.nth


class CallKind(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A collective without its number: ranks repeat few of them many times."""

    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    function: str = ""


class GroupCalls(msgspec.Struct, frozen=True, omit_defaults=True):
    """The collectives of one process group, in order: `first` is the number of the first, `order` has the index of each
    in `RankDigest.calls`. `begun`: the number of the last that began, which may be beyond `order`.
    """

    group: ProcessGroup
    first: int = 1
    order: tuple[int, ...] = ()
    begun: int = 0

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """What identifies the group in all ranks: names that torch counts up differ between them."""
        return self.group.about, self.group.ranks


Ended = Literal["running", "ended", "failed", "killed", "lost"]
"""How a rank ended; "lost": its log ends without a word, and nobody writes to it any more."""


class WrongTensor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An output or gradient of a compiled graph that is wrong, by its name in the report of KernelDiff."""

    name: str
    file: str = ""
    line: int = 0


class RankDigest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rank is compared by. `name` is the process's; `log_bytes`: the size of the log that it is made of.

    `numbers`: what KernelDiff found in this rank, of `compared` tensors; `wrong` are the first of those that are,
    `not_comparable` is why some are not.
    `compile_seconds` is of all frames; None where torch reported none. `stands`: the user's line at which the main
    thread was seen last, `seen`: when anything was.
    """

    name: str
    rank: int
    program: str = ""
    world_size: int | None = None
    host: str = ""
    pid: int = 0
    format: int = DIGEST_FORMAT
    started: float = 0.0
    log_bytes: int = 0
    frames: tuple[FrameDigest, ...] = ()
    compile_seconds: float | None = None
    recorded: bool = False
    calls: tuple[CallKind, ...] = ()
    groups: tuple[GroupCalls, ...] = ()
    pending: tuple[Collective, ...] = ()
    lost: int = 0
    stands: StackLine | None = None
    seen: float = 0.0
    phase: str = ""
    ended: Ended = "running"
    exit_status: int | None = None
    signal: str = ""
    failure: str = ""
    failed_at: StackLine | None = None
    numbers: Numbers = "not compared"
    not_comparable: Remark | str = ""
    compared: int = 0
    wrong: tuple[WrongTensor, ...] = ()

    def calls_of(self, key: tuple[str, tuple[int, ...]]) -> GroupCalls | None:
        """Its collectives in the group of this key; None where it began none there."""
        return next((each for each in self.groups if each.key == key), None)


class RankSide(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Ranks that agree with one another, what they have, and the user's line of it. `frame` is the id of the compile in
    the first of them. Where values of nodes differ, `node_value` is theirs.
    """

    ranks: tuple[int, ...]
    frame: str = ""
    value: str = ""
    file: str = ""
    line: int = 0
    node_value: NodeValue | None = None


class RankDifference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing in which ranks differ. The first side has the ranks that stand out, the others those that agree.

    `frame`: the function that is compiled, for the `nth` time (from 0); `what`: the stage of a graph, the group of a
    collective, an aspect, a node, or how ranks ended; `number`: of a collective, or of the call of a compiled graph.
    `to_ranks`: whom the first side waits for. `follows_rank`: the numbers that differ are the ranks' own.
    `more`: so many other replicas part between the same ranks.
    """

    kind: DifferenceKind
    sides: tuple[RankSide, ...]
    frame: str = ""
    nth: int = 0
    what: str = ""
    number: int = 0
    to_ranks: tuple[int, ...] = ()
    follows_rank: bool = False
    more: int = 0

    @property
    def place(self) -> tuple[str, int]:
        """The user's line: of the side that stands out, else of another; ("", 0) where none is known."""
        return next(((side.file, side.line) for side in self.sides if side.file), ("", 0))


class FrameRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the matrix: a compile, and the ranks in groups that are equal in it. Each group has the digest of its
    first rank; None: these ranks have no such compile.
    """

    function: str
    file: str
    line: int
    nth: int
    groups: tuple[tuple[tuple[int, ...], FrameDigest | None], ...]
    aspects: tuple[Aspect, ...] = ()


class RankComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks of a job held against one another. `columns` are ranks that are equal in all rows; `unseen` ranks have
    no log. `differences`: the first in the order of the program is the first.
    """

    digests: tuple[RankDigest, ...]
    program: str = ""
    unseen: tuple[int, ...] = ()
    columns: tuple[tuple[int, ...], ...] = ()
    rows: tuple[FrameRow, ...] = ()
    differences: tuple[RankDifference, ...] = ()
