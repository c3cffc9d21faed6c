"""Records of failures, of searches for a smaller program that fails the same, of their scripts, and of what these did
when they were run again with another backend, accelerator, options or torch.
"""

from typing import Literal

import msgspec

from idbg.schema.graphs import NodeId

FailureKind = Literal["violation", "compile", "wrong", "runtime", "died", "hung", "break", "recompile", "check", "none"]
"""A broken rule; an exception as it compiles; a wrong result; an exception of compiled code; a process that died of a
signal; one that does not end; a graph break; a recompile; a command of the user's that fails. "none": it runs."""

CALLS, SECONDS = 300, 1800.0
"""The default budget of a minifier: tries, and seconds."""


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes two failures the same one.

    `stage`: "dynamo", "aot", "inductor", "g++", "triton", a backend's name; "" where it is not known. `type`: an
    exception's type, a signal's name, or a rule's. `message`: the piece of a message that is the same wherever it
    fails; of a violation the op; of a wrong result what is wrong ("values", "nan", "form"). `place`: the text of
    the user's line at which it breaks, recompiles or is raised.
    """

    kind: FailureKind
    stage: str = ""
    type: str = ""
    message: str = ""
    place: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.type or self.kind, self.message, self.place) if part)


class Sought(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which failure of a run is to be shown again, by as little as possible.

    "failure": how the run failed, in whatever way. "hang": it did not end, and was stopped. "wrong": its worst output,
    or, with a `launch` (an index into the report's `kernels`), what that kernel computes wrongly. "violation": that of
    `rule` at `node`. "node": none; the nodes that feed `node`. "break", "recompile": at `place` (FILE:LINE; "" the
    first). "check": `command` fails; it is given the script's path as its last argument.
    """

    kind: Literal["failure", "hang", "wrong", "violation", "node", "break", "recompile", "check"] = "failure"
    node: NodeId | None = None
    rule: str = ""
    launch: int | None = None
    place: str = ""
    command: tuple[str, ...] = ()


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a search may take: tries in all, seconds in all; of each try seconds (0: a multiple of what the whole takes)
    and bytes of memory (0: half of the machine's). `first`: it ends with the first script that fails.
    """

    calls: int = CALLS
    seconds: float = SECONDS
    try_seconds: float = 0.0
    memory: int = 0
    first: bool = False


class OtherFailure(msgspec.Struct, frozen=True):
    """A failure that is another than the one looked for, met on the way; `path` is the first script that showed it."""

    signature: str
    count: int
    path: str = ""


class MinifyProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a search has come: what it does now, in words; `size` of `whole` nodes (or lines) are left; `calls`: the
    tries that it has made, beside the `known` that an earlier search had made; `eta`: seconds, None where it is not
    known; `best`: the smallest script that has failed.
    """

    doing: str
    size: int = 0
    whole: int = 0
    unit: Literal["nodes", "lines", "modules"] = "nodes"
    calls: int = 0
    known: int = 0
    budget: int = 0
    seconds: float = 0.0
    eta: float | None = None
    others: int = 0
    best: str = ""


class Minified(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a search came to. With the kind "none", nothing failed, and `path` is "".

    `reproduced`: whether the script failed so in a fresh process (None: it was not run), whose exit status and output
    are `status` and `printed`. `minimal`: no single node (or statement) can be left out; `guarantee` says so in words,
    or what stopped the search. It failed in `failed` of `tried` tries of the whole. `passing` is the script of the
    nearest graph that does not fail, and `difference` what it lacks: node names.
    """

    signature: Signature
    path: str = ""
    reproduced: bool | None = None
    status: int | None = None
    printed: str = ""
    size: int = 0
    whole: int = 0
    unit: Literal["nodes", "lines", "modules"] = "nodes"
    lines: int = 0
    bytes: int = 0
    minimal: bool = False
    guarantee: str = ""
    calls: int = 0
    known: int = 0
    seconds: float = 0.0
    failed: int = 1
    tried: int = 1
    others: tuple[OtherFailure, ...] = ()
    passing: str = ""
    difference: tuple[str, ...] = ()
    note: str = ""


Change = Literal["", "backend", "accelerator", "options", "python"]
Answer = Literal["same", "different", "gone", "not run"]
"""It fails as it should; it fails otherwise; it does not fail; it is not known, as it could not run."""


class Variant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is another than in the script; "" is the script as it is. `value` is what the user wrote."""

    change: Change = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.change} {self.value}" if self.change else "as it is"


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one script in one variant. `status` is its exit status (negative: the signal that ended it), None
    where it did not end by itself; `result_line` is the line that it printed, `note` what else was changed.
    """

    script: str
    variant: Variant
    answer: Answer
    status: int | None = None
    result_line: str = msgspec.field(default="", name="said")
    note: str = ""
    seconds: float = 0.0
