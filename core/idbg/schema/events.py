"""The events of a session.

A session is the list of these events and nothing else: the screen, the JSON report and a replay are folds of it.
"""

from typing import TYPE_CHECKING, Literal, TypeVar, Union

import msgspec

from idbg.schema.attribution import KernelAttribution
from idbg.schema.bench import Row, Task
from idbg.schema.bisection import Bisected, Question, Tried
from idbg.schema.code import CompilerStage, Lowered, OutputCode
from idbg.schema.decisions import Decision, kinds
from idbg.schema.decisions.dynamo import FailedGuard, GraphBreak, Trial
from idbg.schema.diff import Comparison, DiffReport, ErrorMap, SideResult
from idbg.schema.event_base import Event as Event
from idbg.schema.event_base import RunEvent as RunEvent
from idbg.schema.graphs import Frame, Graph, Links, NodeId, Part
from idbg.schema.kernel_edits import KernelEdit
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.process_events import CollectivesSeen as CollectivesSeen
from idbg.schema.process_events import NodeValuesMeasured as NodeValuesMeasured
from idbg.schema.process_events import ProcessEnded as ProcessEnded
from idbg.schema.process_events import ProcessStarted as ProcessStarted
from idbg.schema.processes import Process
from idbg.schema.programs import Failure, Machine, Program, Switch, Target, Verdict
from idbg.schema.repros import Minified, MinifyProgress, Sought
from idbg.schema.violations import Violation

D = TypeVar("D", bound=Decision)
if TYPE_CHECKING:
    AnyDecision = Decision
else:
    AnyDecision = Union[tuple(kinds().values())]  # noqa: UP007  # of as many as there are
FORMAT = 2
"""Of the event log. It grows when an old reader would misread a new log; new types and new fields do not need it."""


class SessionOpened(Event, frozen=True, kw_only=True, tag="session_opened"):
    """The log begins. `version` is that of the idbg that writes it, `format` that of the log. `process` is whose log
    it is, None in the log of a session's main process. `source`: the trace that it was imported from, "" of a session
    that idbg captured.
    """

    version: str
    program: Program
    folder: str
    format: int = FORMAT
    process: Process | None = None
    source: str = ""


class KnownBackend(msgspec.Struct, frozen=True, omit_defaults=True):
    """A backend of another package; with an `error` it cannot be used."""

    name: str
    about: str = ""
    error: str = ""


Captures = Literal["all", "untried", "trace"]


class WorkerStarted(Event, frozen=True, kw_only=True, tag="worker_started"):
    """The worker has imported torch and waits for work. `devices` are torch's names: "cpu", "cuda:0 NVIDIA H200".

    `backends` are those of other packages. `machine` stands in the first of a session's: the others are on the same.
    `captures`: "trace" where idbg does not load with this torch, and `why`; "untried" with a newer torch than it knows.
    """

    pid: int
    torch: str
    python: str
    devices: tuple[str, ...]
    seconds: float
    backends: tuple[KnownBackend, ...] = ()
    machine: Machine | None = None
    captures: Captures = "all"
    why: str = ""


class WorkerDied(Event, frozen=True, kw_only=True, tag="worker_died"):
    """The worker ended unexpectedly: `cause` in words ("killed by SIGSEGV"), and the last lines that it printed."""

    cause: str
    last_output: str = ""


class RunStarted(RunEvent, frozen=True, kw_only=True, tag="run_started"):
    """The worker was given a run; `target` has its rules as text, `comparison` is None where none was requested."""

    program: Program
    target: Target
    comparison: Comparison | None = None


class BackendsCalled(RunEvent, frozen=True, kw_only=True, tag="backends_called"):
    """The backends that compiled so far, where one of them is the program's own and not the target's."""

    backends: tuple[str, ...]


class PhaseChanged(RunEvent, frozen=True, kw_only=True, tag="phase_changed"):
    """A compile phase began (`seconds` is None) or ended; phases nest and interleave."""

    phase: str
    seconds: float | None = None
    frame: str = ""


class OutputWritten(RunEvent, frozen=True, kw_only=True, tag="output_written"):
    """Text that the program, torch or a compiler it called wrote to a stream; `run` 0 means between runs."""

    stream: Literal["stdout", "stderr"]
    text: str


class FrameStarted(RunEvent, frozen=True, kw_only=True, tag="frame_started"):
    """torch begins to compile a frame; what it had of one with the same id before is void."""

    frame: Frame


class SettingsRead(RunEvent, frozen=True, kw_only=True, tag="settings_read"):
    """Torch's settings that differ from its defaults as a frame of the run is compiled, a line of Python each.

    Of a run's frames the first has one, and each whose settings are others than those of the frame before.
    """

    settings: tuple[str, ...]


class GraphCaptured(RunEvent, frozen=True, kw_only=True, tag="graph_captured"):
    """A graph at one stage, as soon as torch has it."""

    graph: Graph


class CodeCaptured(RunEvent, frozen=True, kw_only=True, tag="code_captured"):
    """What Inductor wrote for one part of a frame."""

    code: OutputCode


class LinksCaptured(RunEvent, frozen=True, kw_only=True, tag="links_captured"):
    """Which nodes of one stage came from which of the stage above it."""

    links: Links


class StageCaptured(RunEvent, frozen=True, kw_only=True, tag="stage_captured"):
    """What another compiler made of a graph at one of its stages; one with the same key before is void."""

    stage: CompilerStage


class GraphBroke(RunEvent, frozen=True, kw_only=True, tag="graph_broke"):
    """Dynamo ended a graph before the frame's end."""

    graph_break: GraphBreak


class Recompiled(RunEvent, frozen=True, kw_only=True, tag="recompiled"):
    """torch compiles a frame anew, as a guard failed: `reason` is torch's, `failed` the same guard by guard."""

    frame: str
    reason: str
    failed: tuple[FailedGuard, ...] = ()


class FrameFailed(RunEvent, frozen=True, kw_only=True, tag="frame_failed"):
    """A frame that did not compile, although the program went on: it caught the error, or torch ran the frame eagerly.

    `frame` is the compile id, "" where torch gave none. `went_on`: None where that is not known.
    """

    frame: str
    failure: Failure
    went_on: bool | None = True


class ViolationsFound(RunEvent, frozen=True, kw_only=True, tag="violations_found"):
    """What the backend found in one graph while compiling, under the rules of the run's target."""

    violations: tuple[Violation, ...]


class BackwardsIdle(RunEvent, frozen=True, kw_only=True, tag="backwards_idle"):
    """The backward graphs of these frames were compiled, because their provenance is lost when torch does it later, and
    the program never called them: torch alone would not have compiled them.
    """

    frames: tuple[str, ...]


class SideStarted(RunEvent, frozen=True, kw_only=True, tag="side_started"):
    """A side of the run's comparison ("eager", "float64", the backend's name, "kernels") begins."""

    side: str


class SideEnded(RunEvent, frozen=True, kw_only=True, tag="side_ended"):
    """A side of the run's comparison is over, well or not."""

    side: SideResult


class Compared(RunEvent, frozen=True, kw_only=True, tag="compared"):
    """What is known so far of how the run and its reference differ; the last one before the run's end has all of it."""

    report: DiffReport


class RunEnded(RunEvent, frozen=True, kw_only=True, tag="run_ended"):
    """The run is over. `checked`: its backend holds graphs against the rules.

    `exit_status` is a script's own; with `took_process` it ended the worker's process too (os._exit), or lost the
    device for it; with `replaced` it became another program (os.exec), whose end is the run's. `children`: so many
    processes that the program started compiled too, each into a log of its own.
    """

    verdict: Verdict
    seconds: float
    failure: Failure | None = None
    checked: bool = True
    exit_status: int = 0
    took_process: bool = False
    replaced: bool = False
    children: int = 0


class RulesEdited(Event, frozen=True, kw_only=True, tag="rules_edited"):
    """The rules in force are now `text` (TOML); `origin` is a path, a preset's name, or "editor"."""

    text: str
    origin: str


class RulesRefused(Event, frozen=True, kw_only=True, tag="rules_refused"):
    """`text` is not a valid accelerator; the last good rules stay in force. `line` is 1-based, 0 if it is not known."""

    text: str
    origin: str
    message: str
    line: int = 0


class ReproStarted(RunEvent, frozen=True, kw_only=True, tag="repro_started"):
    """A repro was requested: of this node's violation of `rule`, or, with no node, of the failed compile."""

    node: NodeId | None = None
    rule: str = ""


class ReproEnded(RunEvent, frozen=True, kw_only=True, tag="repro_ended"):
    """A repro was written to `path` ("" if it could not be) and run once in a fresh process.

    `reproduced` is None where it was not run; `status` is that process's exit status and `output` what it printed.
    """

    path: str
    reproduced: bool | None = None
    status: int | None = None
    output: str = ""
    seconds: float = 0.0
    failure: Failure | None = None


class OwnerStarted(RunEvent, frozen=True, kw_only=True, tag="owner_started"):
    """The attribution of this launch of the run's `diff.kernels` was requested."""

    launch: int


class OwnerJudged(RunEvent, frozen=True, kw_only=True, tag="owner_judged"):
    """Whose the error of a launch of a run is, before a script of it was written and tried."""

    owner: KernelAttribution


class OwnerEnded(RunEvent, frozen=True, kw_only=True, tag="owner_ended"):
    """All that is known of whose the error of a launch is; `owner` is None where it could not be found out."""

    owner: KernelAttribution | None = None
    failure: Failure | None = None


class ErrorsMapped(RunEvent, frozen=True, kw_only=True, tag="errors_mapped"):
    """The error over one slice of an output of a run; `map` is None where it could not be had."""

    map: ErrorMap | None = None
    failure: Failure | None = None


class KernelLowered(RunEvent, frozen=True, kw_only=True, tag="kernel_lowered"):
    """What a kernel of a run was lowered to; `lowered` is None where that could not be had."""

    frame: str
    part: Part
    name: str
    lowered: Lowered | None = None
    failure: Failure | None = None


class KernelEditing(RunEvent, frozen=True, kw_only=True, tag="kernel_editing"):
    """A version of a kernel's source is tried in place of the original: `step` of it begins."""

    frame: str
    part: Part
    name: str
    version: int
    step: str = ""


class KernelEdited(RunEvent, frozen=True, kw_only=True, tag="kernel_edited"):
    """A version of a kernel's source was tried; `edit` has its failure where it could not be built or run."""

    edit: KernelEdit


# The compiler's decisions


class DecisionsRecorded(RunEvent, frozen=True, kw_only=True, tag="decisions"):
    """Decisions of one kind, of one frame, or of none in particular."""

    frame: str = ""
    decisions: tuple[AnyDecision, ...]

    def of(self, kind: type[D]) -> list[D]:
        """Those of this kind."""
        return [each for each in self.decisions if isinstance(each, kind)]


# Searches


class MinifyStarted(RunEvent, frozen=True, kw_only=True, tag="minify_started"):
    """A search began for the smallest script that shows a failure of a run."""

    sought: Sought


class MinifyProgressed(RunEvent, frozen=True, kw_only=True, tag="minify_progressed"):
    """How far the search has come."""

    progress: MinifyProgress


class MinifyEnded(RunEvent, frozen=True, kw_only=True, tag="minify_ended"):
    """The search is over. `minified` is what was found, also by one that was stopped; None where it could not begin."""

    minified: Minified | None = None
    failure: Failure | None = None


class BisectStarted(RunEvent, frozen=True, kw_only=True, tag="bisect_started"):
    """A bisection of a run's failure began."""

    question: Question


class BisectProgressed(RunEvent, frozen=True, kw_only=True, tag="bisect_progressed"):
    """A try of that bisection begins, described by `what`; with `tried`, it ended."""

    what: str
    tried: Tried | None = None


class BisectEnded(RunEvent, frozen=True, kw_only=True, tag="bisect_ended"):
    """The bisection ended: `bisected` is None where nothing could be tried."""

    bisected: Bisected | None = None
    failure: Failure | None = None


# Benchmarks


class BenchStarted(Event, frozen=True, kw_only=True, tag="bench_started"):
    """So many rows will be measured, in processes of their own."""

    cases: int = msgspec.field(name="subjects")


class BenchTaskStarted(Event, frozen=True, kw_only=True, tag="bench_task_started"):
    """One of the processes that a row takes has begun; `backend` is written NAME or NAME:MODE."""

    program: str
    backend: str
    task: Task


class BenchStepStarted(Event, frozen=True, kw_only=True, tag="bench_step_started"):
    """Step `step` of `of` of the task that is measured has begun."""

    step: int
    of: int
    words: str


class RowMeasured(Event, frozen=True, kw_only=True, tag="row_measured"):
    """A row is measured, and kept where the database took it."""

    row: Row


class KernelsTimed(Event, frozen=True, kw_only=True, tag="kernels_timed"):
    """How long each kernel of the program takes on a backend; or why that is not known."""

    program: str
    backend: str
    times: KernelTimes | None = None
    failure: Failure | None = None


class BenchEnded(Event, frozen=True, kw_only=True, tag="bench_ended"):
    """Nothing is measured any more; a failure says that it was cancelled, or which row the database did not take."""

    failure: Failure | None = None


class SuggestionTried(Event, frozen=True, kw_only=True, tag="suggestion_tried"):
    """The program ran again as a suggestion has it."""

    trial: Trial


class SwitchesListed(Event, frozen=True, kw_only=True, tag="switches_listed"):
    """The settings that can be flipped, as the worker's torch has them."""

    switches: tuple[Switch, ...]


class NotRecorded(RunEvent, frozen=True, kw_only=True, tag="not_recorded"):
    """The trace of this run does not have these records, named as the reports of `decisions`, or "skips": that the run
    has none of them is no answer.
    """

    records: tuple[str, ...]


class Noted(Event, frozen=True, kw_only=True, tag="noted"):
    """A sentence for the user. `missing`: it says what the session lacks, from here on or of what stood in its log."""

    level: Literal["info", "warning", "error"]
    text: str
    missing: bool = False


_SESSION = SessionOpened | ProcessStarted | ProcessEnded | WorkerStarted | WorkerDied | SwitchesListed | Noted
_COMPILE = FrameStarted | SettingsRead | GraphCaptured | CodeCaptured | LinksCaptured | StageCaptured | GraphBroke
_RUN = (
    RunStarted
    | NotRecorded
    | BackendsCalled
    | PhaseChanged
    | OutputWritten
    | Recompiled
    | FrameFailed
    | ViolationsFound
    | RunEnded
)
_COMPARISON = SideStarted | SideEnded | Compared | OwnerStarted | OwnerJudged | OwnerEnded | ErrorsMapped
_EDIT = RulesEdited | RulesRefused | KernelLowered | KernelEditing | KernelEdited | ReproStarted | ReproEnded
_SEARCH = MinifyStarted | MinifyProgressed | MinifyEnded | BisectStarted | BisectProgressed | BisectEnded
_RANK = CollectivesSeen | NodeValuesMeasured | NotRecorded | SuggestionTried
_BENCH = BenchStarted | BenchTaskStarted | BenchStepStarted | RowMeasured | KernelsTimed | BenchEnded

SessionEvent = (
    _SESSION | _RUN | _COMPILE | _COMPARISON | _EDIT | _SEARCH | _BENCH | BackwardsIdle | DecisionsRecorded | _RANK
)
