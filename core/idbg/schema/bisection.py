"""Records of bisections: which part of the compiler, which settings or which commit causes a failure."""

from typing import Literal

import msgspec

from idbg.schema.diff import Comparison
from idbg.schema.programs import LoweredNode, OptionValue, Program, Target
from idbg.schema.remarks import Remark
from idbg.schema.repros import Signature

Kind = Literal["compiler", "options", "fuzz", "commits"]
"""Which part of torch's compiler; which of the options that two sets do not share; which of options drawn at random;
which commit of the program's."""

OptionSet = dict[str, OptionValue]
"""Settings by name: Inductor's as they are, "dynamo.NAME" and "functorch.NAME", "target.NAME" (as backend)."""

GRAPHS = "pre_grad_graph"
"""What torch calls a graph on its way into Inductor: a part that is applied once to each."""

PYTHON = "python"
"""The level at which nothing is compiled: the program runs with torch.compile switched off."""

TRY_SECONDS = 600.0
"""The time limit of the first try, unless another is set."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is bisected: `kind`, for a program that fails on a target.

    It fails as a run of it does; where it runs through, by its numbers; with a `command`, as that exits, which is given
    the program's path as its last argument. "options": the two `sets`, by these `names`. "fuzz": `draws` sets of
    options, drawn by `seed`. "commits": after `good`, up to `bad`. `seconds`: what a try may take at most.
    """

    kind: Kind
    program: Program
    target: Target = Target()
    command: tuple[str, ...] = ()
    sets: tuple[OptionSet, ...] = ()
    names: tuple[str, ...] = ()
    draws: int = 0
    seed: int = 0
    good: str = ""
    bad: str = ""
    first_parent: bool = False
    seconds: float = TRY_SECONDS


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of the compiler is used: this backend ("": the target's own), and of its `subsystem` the first `applied`
    applications (None: all of them; of one that is a setting, 0 means that it is set so that the part is off). Inductor
    compiles the first so many `graphs` (None: all), and the others run as Dynamo traced them.
    """

    backend: str = ""
    subsystem: str = ""
    applied: int | None = None
    graphs: int | None = None


class Subsystem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a backend that torch can switch off: application by application, or by a setting of `config`."""

    name: str
    config: str = ""
    setting: str = ""
    value: OptionValue = None


class BackendParts(msgspec.Struct, frozen=True):
    """A backend of torch's, each more than the one before, and the parts of it that can be switched off, in order."""

    name: str
    subsystems: tuple[Subsystem, ...] = ()


class Application(msgspec.Struct, frozen=True, omit_defaults=True):
    """One application of a part: a pass on a graph, the lowering of a node. `number` counts from 1 over the whole run;
    `frame` is torch's compile id, `graph` the graph that it is applied to: "dynamo", "joint", "forward", ...
    """

    number: int
    what: str = ""
    frame: str = ""
    graph: str = ""


class Try(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one process tries: the program for the target, at a level, with these of torch's settings; compared,
    where there is a comparison; or a `command`, whose exit status decides. `environ`: variables beside our own.
    `parts`: report torch's table of backends. `seed`: instead, draw options as torch's fuzzer does.
    """

    program: Program
    target: Target = Target()
    level: Level = Level()
    settings: OptionSet = {}
    comparison: Comparison | None = None
    command: tuple[str, ...] = ()
    cwd: str = ""
    environ: dict[str, str] = {}
    parts: bool = False
    seed: int | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one try came to. `signature` is None where it does not fail; `words`: the failure in a line.

    `lowering`: the node whose lowering, code of the user's own, raised it. `counts`: how often each part was applied.
    `last`: the last application that the level allowed, with the graph before and after it as text ("" where there is
    none). `drawn`: the options that were drawn. `own`: the program's own backend, where that compiled it.
    """

    signature: Signature | None = None
    words: str = ""
    lowering: LoweredNode | None = None
    cannot: str = ""  # why nothing could be tried; "" where it was
    compiled: bool = False
    counts: dict[str, int] = {}
    last: Application | None = None
    before: str = ""
    after: str = ""
    parts: tuple[BackendParts, ...] = ()
    drawn: OptionSet | None = None
    torch: str = ""
    own: str = ""


PROGRESS_FILE = "progress.json"
"""A file in a try's cache: an Answer with nothing but what was applied so far."""

Outcome = Literal["fails", "passes", "other"]
"""It fails as what is looked for; it does not fail; it fails otherwise, or cannot be tried."""


class Tried(msgspec.Struct, frozen=True, omit_defaults=True):
    """One try, in words, and what came of it; `otherwise`: how it failed, where that was another failure."""

    what: str
    outcome: Outcome
    seconds: float
    otherwise: str = ""


class SuspectPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of the compiler without which it does not fail.

    `backend` is the first that fails so (`PYTHON`: the program fails without torch.compile). `subsystem` "" where none
    of its parts fixes it when switched off. `application` is the failing one of `of`: with those up to it the program
    fails, and with those before it alone it does not; where some between could not be tried, `first` is the first that
    may be it. `before` and `after` are the graph around it. Of several `graphs` that Inductor compiles, that of `frame`
    is the first without which it does not fail. With `lowering` one of the user's own raised it: nothing was switched
    off.
    """

    backend: str
    subsystem: str = ""
    frame: str = ""
    graphs: int = 0
    otherwise: str = ""  # how it fails there, where that is not how it fails when compiled
    setting: str = ""
    value: OptionValue = None
    application: Application | None = None
    of: int = 0
    first: int = 0
    before: str = ""
    after: str = ""
    lowering: LoweredNode | None = None


class OptionDifference(msgspec.Struct, frozen=True):
    """An option whose value matters: with `failing` it fails, with `passing` it does not (None there: the default)."""

    name: str
    failing: OptionValue
    passing: OptionValue = None
    unset: bool = False  # the passing set does not name it

    @property
    def failing_text(self) -> str:
        """It as the failing set has it: "epilogue_fusion=False"."""
        return f"{self.name}={self.failing!r}" if self.failing is not None or self.unset else f"{self.name} unset"


class FailingOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The smallest set of differences that makes it fail, of `among`: without any one of them it does not, if
    `minimal`.
    """

    options: tuple[OptionDifference, ...]
    among: int = 0
    minimal: bool = True
    words: str = ""  # how it fails with them


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One commit of the program's repository: `stat` is its diff stat, `date` ISO 8601."""

    sha: str
    author: str = ""
    date: str = ""
    subject: str = ""
    stat: str = ""


class FailingCommit(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first commit that fails; or, where some could not be tried, those that may be it, oldest first."""

    commits: tuple[Commit, ...]
    among: int = 0


class Bisected(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a bisection. `signature` is the failure that was looked for, None where nothing failed.

    `note` says why there is no answer, though nothing went wrong; `stopped` why it is not the whole one, "" if it is.
    `options` has one entry, or with "fuzz" one for each failure that was found. `views.bisection` writes the sentence:
    `sentence` has it in older sessions alone.
    """

    question: Kind
    sentence: str = ""
    signature: Signature | None = None
    words: str = ""
    part: SuspectPart | None = None
    options: tuple[FailingOptions, ...] = ()
    commit: FailingCommit | None = None
    tried: tuple[Tried, ...] = ()
    seconds: float = 0.0
    stopped: str = ""
    torch: str = ""
    note: Remark | str = ""

    @property
    def others(self) -> tuple[Tried, ...]:
        """The tries that failed otherwise."""
        return tuple(one for one in self.tried if one.outcome == "other")
