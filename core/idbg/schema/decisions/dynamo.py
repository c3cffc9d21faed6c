"""Records of Dynamo's decisions on each Python frame: breaks, skips, guards and recompiles.

`frame` is everywhere the id of a frame as the session has it: torch's compile id ("0/1": frame 0, its first recompile).
"""

from typing import Literal

import msgspec

from idbg.schema.decisions.base import Decision, Report
from idbg.schema.graphs import Frame, Graph
from idbg.schema.programs import OptionValue

REPORTS = (
    Report("breaks", "where graphs break, why, and what that costs", "line", "graph breaks", finding=1),
    Report("recompiles", "what was compiled again, for which guard, and what to do", "line", "recompiles", finding=2),
    Report(
        "guards",
        "what torch checks before it uses compiled code, what that costs, and which check failed",
        "line",
        "guards",
    ),
    Report("frames", "what became of each frame, and what Dynamo left alone", "line", row="frame"),
    Report("graphs", "the graphs of each frame, and their ops", "run", "graphs"),
)
FrameEnd = Literal["compiled", "eager", "skipped", "failed"]
"""What became of an attempt to compile a frame: "eager": torch gave it up (a break with nothing before it, the
recompile limit, suppress_errors); "skipped": it holds nothing to compile.
"""


class StackLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One line of a Python stack, with the function that it is in and the line's text."""

    file: str
    line: int
    function: str = ""
    code: str = ""


Stack = tuple[StackLine, ...]
"""Outermost first."""

BreakWay = Literal["", "call", "branch", "rest", "frame", "frame or error", "limit"]
"""How the function goes on after a graph break: "call": Python makes one call, what follows it is a frame of its own;
"branch": Python chooses, and each arm is such a frame; "rest": what follows runs in eager; "frame": all of it does;
"frame or error": all of it does, or with fullgraph=True the program got an error; "limit": it was compiled too often,
and other inputs run in eager.
"""


class GraphBreak(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why Dynamo stopped a graph, and at which of the user's lines.

    `reason` is one sentence; `kind` torch's title of such breaks ("Data-dependent branching"), `explanation`, `hints`
    and `context` its own words; `page` the address of torch's page of it (GBxxxx), "" where it has none. `stack` is
    the user's, with torch's frames. Each break is recorded once for a line and reason: others are a `BreakAgain`.
    """

    reason: str
    file: str = ""
    line: int = 0
    frame: str = ""
    kind: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    page: str = ""
    stack: Stack = ()
    way: BreakWay = ""


class BreakAgain(Decision, frozen=True, tag="break_again"):
    """Another frame broke where and why one did before: `first` is the number of that break in its run, from 0."""

    first: int
    frame: str
    way: BreakWay = ""


FailedKind = Literal["value", "size", "tensor", "type", "identity", "length", "key", "state", "alias", "other"]
"""What of a guard's source was another: "size" is of a tensor, "tensor" its dtype, device, strides or gradient;
"identity": which object it is; "key": whether a dict has it; "state": grad mode and the like; "alias": two are one.
"""


class FailedGuard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one compiled version of a frame (`against`) did not fit a call. `text` is torch's own; `code` the guard;
    `source` what it is about; `expected` and `actual` what was wanted of it and what it was, as Python writes them;
    `what` names it where the source is no whole value ("size 0", "dtype"). `stack` is where the user's code caused the
    guard.
    """

    text: str
    kind: FailedKind = "other"
    what: str = ""
    against: str = ""
    code: str = ""
    source: str = ""
    expected: str = ""
    actual: str = ""
    file: str = ""
    line: int = 0
    stack: Stack = ()


class FrameResult(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="frame"):
    """What became of one compile of a frame. `seconds`: all of it, backends included; None where torch reported none.

    `attempts`: how often its bytecode was traced (a break makes torch trace it anew); `restarts`: why. `ops`: calls
    in its graph. `lost`: the seconds of `seconds` that went into attempts that were given up. `entries`: how many
    compiled versions of this code there were then, with this one; `alike`: those of them that torch counts against
    `limit` (its recompile_limit); `limit_all` is the most entries that one code may have.
    `automatic`: whether torch then compiled as dynamic what changed between calls (not with dynamic=False).
    `failed`: the guards for which it would have been compiled again, where the limit forbade it. `stack` is the user's,
    where it was given up for an error.
    """

    frame: str
    end: FrameEnd
    why: str = ""
    seconds: float | None = None
    attempts: int = 1
    restarts: tuple[str, ...] = ()
    ops: int | None = None
    guards: int | None = None
    lost: float | None = None
    entries: int | None = None
    alike: int | None = None
    limit: int | None = None
    limit_all: int | None = None
    automatic: bool | None = None
    failed: tuple[FailedGuard, ...] = ()
    stack: Stack = ()

    def slot(self, frame: str) -> str:
        return self.frame


class Skip(Decision, frozen=True, omit_defaults=True, tag="skip"):
    """A Python function that Dynamo skipped, and torch's reason."""

    function: str
    file: str
    line: int
    reason: str


class SkipsDropped(Decision, frozen=True, tag="skips_dropped"):
    """How many more functions were skipped than are recorded."""

    count: int

    def slot(self, frame: str) -> str:
        return ""


LEAST_SECONDS = 1e-8
"""Of a check: less cannot be distinguished from the call that measures it."""


class Guard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One condition under which a frame's compiled code may be used.

    `kind` is torch's ("TENSOR_MATCH", "EQUALS_MATCH", "SHAPE_ENV"); `source` the expression that it is about
    ("L['x']"); `code` what it checks, each as Python; `stack` the user's lines that caused it, outermost first.
    `seconds`: one evaluation, measured alone; 0.0 is under LEAST_SECONDS, None is not measured (it relates several
    values, or too many others came before it).
    """

    kind: str
    source: str = ""
    code: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    stack: Stack = ()
    seconds: float | None = None


class LeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """Guards of one kind that Dynamo requested and that are not evaluated by themselves; `why` where it is known."""

    kind: str
    count: int
    why: str = ""


class FrameGuards(Decision, frozen=True, kw_only=True, omit_defaults=True, tag="guards"):
    """The checks that torch makes before it uses a compiled frame. `seconds`: one evaluation of all of them by torch's
    own C++ code, measured just after another, as in a loop of calls; `cold`: torch's own measurement, with the
    processor's caches emptied. None where they were not measured. `requested`: guards as torch counts them, before it
    drops and merges some (`left_out`); `dropped`: checks beyond those that are kept here.
    """

    frame: str
    guards: tuple[Guard, ...]
    seconds: float | None = None
    cold: float | None = None
    requested: int | None = msgspec.field(default=None, name="asked")
    left_out: tuple[LeftOut, ...] = ()
    dropped: int = 0

    def slot(self, frame: str) -> str:
        return self.frame


class FrameCalls(Decision, frozen=True, tag="calls"):
    """How often the graph of a frame was called in its run, and the seconds of its fastest and of its first call, on
    the side of this process: what a GPU does goes on behind. Without its guards.
    """

    frame: str
    calls: int
    fastest: float
    first: float

    def slot(self, frame: str) -> str:
        return self.frame


class Trial(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a suggestion changed: the program ran as `before`, and with it as `after` (numbers of runs). The suggestion
    is what its target has: `dynamic`, `dynamic_sources`, `settings`. `counts`: of each function its compiles, of each
    line its breaks, as (which, before, after), "" for all of them. `failure`: the run with it failed.
    """

    before: int
    after: int
    dynamic: bool | None = None
    dynamic_sources: tuple[str, ...] = ()
    settings: dict[str, OptionValue] = {}
    counts: tuple[tuple[str, int, int], ...] = ()
    failure: str = ""


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
