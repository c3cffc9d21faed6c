"""The events of a session.

A session is the list of these events and nothing else: the screen, the JSON report and a replay are folds of it.
"""

from typing import Literal

import msgspec

from idbg.schema.attribution import KernelAttribution
from idbg.schema.bench_events import BenchEnded as BenchEnded
from idbg.schema.bench_events import BenchStarted as BenchStarted
from idbg.schema.bench_events import BenchStepStarted as BenchStepStarted
from idbg.schema.bench_events import BenchTaskStarted as BenchTaskStarted
from idbg.schema.bench_events import KernelsTimed as KernelsTimed
from idbg.schema.bench_events import RowMeasured as RowMeasured
from idbg.schema.code import Lowered, OutputCode
from idbg.schema.decisions.dynamo import FailedGuard, GraphBreak
from idbg.schema.decisions.events import DECISION as DECISION
from idbg.schema.decisions.events import Autotuning as Autotuning
from idbg.schema.decisions.events import BrokeAgain as BrokeAgain
from idbg.schema.decisions.events import CacheAnswered as CacheAnswered
from idbg.schema.decisions.events import CallsTimed as CallsTimed
from idbg.schema.decisions.events import CudaGraphDecided as CudaGraphDecided
from idbg.schema.decisions.events import FrameDone as FrameDone
from idbg.schema.decisions.events import FrameSkipped as FrameSkipped
from idbg.schema.decisions.events import FusionDecided as FusionDecided
from idbg.schema.decisions.events import GuardsCaptured as GuardsCaptured
from idbg.schema.decisions.events import PassesRan as PassesRan
from idbg.schema.decisions.events import SkipsDropped as SkipsDropped
from idbg.schema.decisions.events import SpansRecorded as SpansRecorded
from idbg.schema.decisions.events import SwitchesListed as SwitchesListed
from idbg.schema.diff import Comparison, DiffReport, ErrorMap, SideResult
from idbg.schema.event import Event as Event
from idbg.schema.graphs import Frame, Graph, Links, NodeId, Part
from idbg.schema.programs import Failure, Machine, Program, Target, Verdict
from idbg.schema.search_events import BisectEnded as BisectEnded
from idbg.schema.search_events import BisectProgressed as BisectProgressed
from idbg.schema.search_events import BisectStarted as BisectStarted
from idbg.schema.search_events import MinifyEnded as MinifyEnded
from idbg.schema.search_events import MinifyProgressed as MinifyProgressed
from idbg.schema.search_events import MinifyStarted as MinifyStarted
from idbg.schema.violations import Violation

FORMAT = 1
"""Of the event log. It grows when an old reader would misread a new log; new types and new fields do not need it."""


class SessionOpened(Event, frozen=True, kw_only=True, tag="session_opened"):
    """The log begins. `version` is that of the idbg that writes it, `format` that of the log."""

    version: str
    program: Program
    folder: str
    format: int = FORMAT


class KnownBackend(msgspec.Struct, frozen=True, omit_defaults=True):
    """A backend of another package; with an `error` it cannot be used."""

    name: str
    about: str = ""
    error: str = ""


class WorkerStarted(Event, frozen=True, kw_only=True, tag="worker_started"):
    """The worker has imported torch and waits for work. `devices` are torch's names: "cpu", "cuda:0 NVIDIA H200".

    `backends` are those of other packages. `machine` stands in the first of a session's: the others are on the same.
    """

    pid: int
    torch: str
    python: str
    devices: tuple[str, ...]
    seconds: float
    backends: tuple[KnownBackend, ...] = ()
    machine: Machine | None = None


class WorkerDied(Event, frozen=True, kw_only=True, tag="worker_died"):
    """The worker ended unexpectedly: `cause` in words ("killed by SIGSEGV"), and the last lines that it printed."""

    cause: str
    last_output: str = ""


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """The worker was given a run; `target` has its rules as text, `comparison` is None where none was requested."""

    run: int
    program: Program
    target: Target
    comparison: Comparison | None = None


class BackendsCalled(Event, frozen=True, kw_only=True, tag="backends_called"):
    """The backends that compiled so far, where one of them is the program's own and not the target's."""

    run: int
    backends: tuple[str, ...]


class PhaseChanged(Event, frozen=True, kw_only=True, tag="phase_changed"):
    """A compile phase began (`seconds` is None) or ended; phases nest and interleave."""

    run: int
    phase: str
    seconds: float | None = None
    frame: str = ""


class OutputWritten(Event, frozen=True, kw_only=True, tag="output_written"):
    """Text that the program, torch or a compiler it called wrote to a stream; `run` 0 means between runs."""

    run: int
    stream: Literal["stdout", "stderr"]
    text: str


class FrameStarted(Event, frozen=True, kw_only=True, tag="frame_started"):
    """torch begins to compile a frame; what it had of one with the same id before is void."""

    run: int
    frame: Frame


class SettingsRead(Event, frozen=True, kw_only=True, tag="settings_read"):
    """Torch's settings that differ from its defaults as a frame of the run is compiled, a line of Python each.

    Of a run's frames the first has one, and each whose settings are others than those of the frame before.
    """

    run: int
    settings: tuple[str, ...]


class GraphCaptured(Event, frozen=True, kw_only=True, tag="graph_captured"):
    """A graph at one stage, as soon as torch has it."""

    run: int
    graph: Graph


class CodeCaptured(Event, frozen=True, kw_only=True, tag="code_captured"):
    """What Inductor wrote for one part of a frame."""

    run: int
    code: OutputCode


class LinksCaptured(Event, frozen=True, kw_only=True, tag="links_captured"):
    """Which nodes of one stage came from which of the stage above it."""

    run: int
    links: Links


class GraphBroke(Event, frozen=True, kw_only=True, tag="graph_broke"):
    """Dynamo ended a graph before the frame's end."""

    run: int
    graph_break: GraphBreak


class Recompiled(Event, frozen=True, kw_only=True, tag="recompiled"):
    """torch compiles a frame anew, as a guard failed: `reason` is torch's, `failed` the same guard by guard."""

    run: int
    frame: str
    reason: str
    failed: tuple[FailedGuard, ...] = ()


class FrameFailed(Event, frozen=True, kw_only=True, tag="frame_failed"):
    """A frame that did not compile, although the program went on: it caught the error, or torch ran the frame eagerly.

    `frame` is the compile id, "" where torch gave none.
    """

    run: int
    frame: str
    failure: Failure


class ViolationsFound(Event, frozen=True, kw_only=True, tag="violations_found"):
    """What the backend found in one graph while compiling, under the rules of the run's target."""

    run: int
    violations: tuple[Violation, ...]


class BackwardsIdle(Event, frozen=True, kw_only=True, tag="backwards_idle"):
    """The backward graphs of these frames were compiled, because their provenance is lost when torch does it later, and
    the program never called them: torch alone would not have compiled them.
    """

    run: int
    frames: tuple[str, ...]


class SideStarted(Event, frozen=True, kw_only=True, tag="side_started"):
    """A side of the run's comparison ("eager", "float64", the backend's name, "kernels") begins."""

    run: int
    side: str


class SideEnded(Event, frozen=True, kw_only=True, tag="side_ended"):
    """A side of the run's comparison is over, well or not."""

    run: int
    side: SideResult


class Compared(Event, frozen=True, kw_only=True, tag="compared"):
    """What is known so far of how the run and its reference differ; the last one before the run's end has all of it."""

    run: int
    report: DiffReport


class RunEnded(Event, frozen=True, kw_only=True, tag="run_ended"):
    """The run is over. `checked`: its backend holds graphs against the rules.

    `exit_status` is a script's own; with `took_process` it ended the worker's process too (os._exit), or lost the
    device for it.
    """

    run: int
    verdict: Verdict
    seconds: float
    failure: Failure | None = None
    checked: bool = True
    exit_status: int = 0
    took_process: bool = False


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


class ReproStarted(Event, frozen=True, kw_only=True, tag="repro_started"):
    """A repro was requested: of this node's violation of `rule`, or, with no node, of the failed compile."""

    run: int
    node: NodeId | None = None
    rule: str = ""


class ReproEnded(Event, frozen=True, kw_only=True, tag="repro_ended"):
    """A repro was written to `path` ("" if it could not be) and run once in a fresh process.

    `reproduced` is None where it was not run; `status` is that process's exit status and `output` what it printed.
    """

    run: int
    path: str
    reproduced: bool | None = None
    status: int | None = None
    output: str = ""
    seconds: float = 0.0
    failure: Failure | None = None


class OwnerStarted(Event, frozen=True, kw_only=True, tag="owner_started"):
    """The attribution of this launch of the run's `diff.kernels` was requested."""

    run: int
    launch: int


class OwnerJudged(Event, frozen=True, kw_only=True, tag="owner_judged"):
    """Whose the error of a launch of a run is, before a script of it was written and tried."""

    run: int
    owner: KernelAttribution


class OwnerEnded(Event, frozen=True, kw_only=True, tag="owner_ended"):
    """All that is known of whose the error of a launch is; `owner` is None where it could not be found out."""

    run: int
    owner: KernelAttribution | None = None
    failure: Failure | None = None


class ErrorsMapped(Event, frozen=True, kw_only=True, tag="errors_mapped"):
    """The error over one slice of an output of a run; `map` is None where it could not be had."""

    run: int
    map: ErrorMap | None = None
    failure: Failure | None = None


class KernelLowered(Event, frozen=True, kw_only=True, tag="kernel_lowered"):
    """What a kernel of a run was lowered to; `lowered` is None where that could not be had."""

    run: int
    frame: str
    part: Part
    name: str
    lowered: Lowered | None = None
    failure: Failure | None = None


class Noted(Event, frozen=True, kw_only=True, tag="noted"):
    """A sentence for the user. `missing`: it says what the session lacks, from here on or of what stood in its log."""

    level: Literal["info", "warning", "error"]
    text: str
    missing: bool = False


SessionEvent = (
    SessionOpened
    | WorkerStarted
    | WorkerDied
    | RunStarted
    | BackendsCalled
    | PhaseChanged
    | OutputWritten
    | FrameStarted
    | SettingsRead
    | GraphCaptured
    | CodeCaptured
    | LinksCaptured
    | GraphBroke
    | Recompiled
    | FrameFailed
    | ViolationsFound
    | BackwardsIdle
    | SideStarted
    | SideEnded
    | Compared
    | RunEnded
    | RulesEdited
    | RulesRefused
    | ReproStarted
    | ReproEnded
    | MinifyStarted
    | MinifyProgressed
    | MinifyEnded
    | BisectStarted
    | BisectProgressed
    | BisectEnded
    | OwnerStarted
    | OwnerJudged
    | OwnerEnded
    | ErrorsMapped
    | KernelLowered
    | DECISION
    | SwitchesListed
    | BenchStarted
    | BenchTaskStarted
    | BenchStepStarted
    | RowMeasured
    | KernelsTimed
    | BenchEnded
    | Noted
)
