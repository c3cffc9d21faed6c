"""Collect what one run compiles, as events.

Every compile, wherever in the program it starts, finds its session by `current`.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import torch
from msgspec.structs import replace
from torch.fx import GraphModule

from idbg.accelerators.model import Accelerator
from idbg.checking.check import rules_for_stage
from idbg.constraints import Checker
from idbg.engine.capture.frame import Emit, FrameCapture
from idbg.engine.capture.outcomes import Outcomes
from idbg.engine.capture.stages import Stages
from idbg.engine.capture.trace import Measured, Problem, Timed, read_trace
from idbg.engine.compat import registrations, repros
from idbg.engine.compat.hooks import Feature, notes_to
from idbg.engine.compat.lowering import Compiled
from idbg.schema import events
from idbg.schema.decisions.dynamo import BreakAgain, FailedGuard, GraphBreak
from idbg.schema.graphs import Frame, Graph, GraphId
from idbg.schema.violations import Violation

# how a run lowers a Dynamo graph: (graph module, inputs, options for the target's backend, and the arguments of the
# program's own torch.compile where they name another backend)
Lower = Callable[[GraphModule, list[object], dict[str, object], Mapping[str, object]], Compiled]

PHASES = frozenset(
    {
        *("program", "run", "dynamo", "aot autograd", "joint passes", "post-grad passes", "lowering", "scheduling"),
        *("codegen", "c++ compile", "kernel build", "backward"),
    }
)
"""The timed parts that a header and a progress line show."""
Code = tuple[str, str, int]
"""A code object by its name, file and first line: after a reset what follows a graph break is a new object."""
OWN_WORK = "idbg"
"""The phase of idbg's own work in a compile: converting graphs to records, and checking rules."""


@dataclass
class SavedGraph:
    """A graph for a repro: a copy of its module (parameters shared), and the values of its first call, in the order of
    its placeholders; empty where they are unknown (a backward's).
    """

    gm: GraphModule
    inputs: list[object]
    grad_enabled: bool


@dataclass
class Compiling:
    """The state in which a frame's backend is called: a script must set it to reproduce a failure.

    `arguments` are those of the program's torch.compile, if its own backend compiles; `objects` are the settings that
    hold functions or objects, such as passes; `patches`: torch's functions that are replaced, read after a failure.
    `error` is what the backend raised.
    """

    options: dict[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    settings: tuple[str, ...] = field(default_factory=repros.changed_settings)
    modes: tuple[str, ...] = field(default_factory=repros.modes)
    objects: tuple[tuple[str, object], ...] = field(default_factory=registrations.set_to_objects)
    patches: tuple[tuple[str, object], ...] | None = None
    error: BaseException | None = None

    def own_options(self) -> Iterator[str]:
        """The options of this torch.compile as a line of Python, functions by their names."""
        options = {**cast("Mapping[str, object]", self.arguments.get("options") or {}), **self.options}
        if options:
            values = (f"{name!r}: {getattr(value, '__qualname__', repr(value))}" for name, value in options.items())
            yield f"torch.compile(options={{{', '.join(values)}}})"

    def fail(self, error: BaseException) -> None:
        """The compile failed with this error; the first one counts."""
        if self.error is None:
            self.error, self.patches = error, registrations.patched()


class RunCapture:
    """The data of one run, as events. Rules are checked on each graph that a backend gets."""

    def __init__(self, run: int, emit: Emit, accelerator: Accelerator | None) -> None:
        self.run = run
        self.emit = emit
        self.is_paused = False  # while something else compiles: see `uncaptured`
        self.is_comparing = False  # while the program's own compiled function is compared
        self.has_compared = False
        self.compared: Counter[Code] = Counter()  # compiles in there, until the program's own call is over
        self.accelerator = accelerator
        self.frames: dict[str, FrameCapture] = {}
        self.violations: list[Violation] = []
        self.saved_graphs: dict[GraphId, SavedGraph] = {}
        self.compiles: dict[str, Compiling] = {}
        self.lower: Lower | None = None
        self.on_host = False  # saved inputs are copied to the CPU: the device may be lost before the run ends
        self.outcomes = Outcomes()
        self.fallback_messages: list[str] = []  # of the backend's package
        self.split_numbers = count()
        self.timekeeper: Callable[[str, Timed], None] | None = None
        self.stages = Stages(self)  # of other compilers
        self.backend = ""  # the name of what `lower` compiles for
        self.children: Callable[[], int] = lambda: 0  # how many processes that the program started have compiled
        self.own_process = False  # nothing but the session runs in this process: settings that stay are no harm
        self._ids: dict[str, str] = {}
        self._started: dict[str, Frame] = {}
        self._ended: set[str] = set()  # frames whose compile is over
        self._breaks: dict[tuple[str, int, str], int] = {}
        self._began: dict[tuple[str, str], list[float]] = {}
        self._settings: tuple[str, ...] | None = None
        self._notes: set[str] = set()

        # set while Dynamo's decisions are recorded
        self.parent: Callable[[], str] = lambda: ""
        self.measured: Callable[[str, Measured], None] = lambda name, measured: None
        self.failed_guards: dict[str, list[FailedGuard]] = {}  # by torch's compile id
        self.errors: dict[str, str] = {}  # by torch's compile id, as torch prints them

    def note(self, text: str) -> None:
        """Add a warning to the run, once."""
        if text not in self._notes:
            self._notes.add(text)
            self.emit(events.Noted(level="warning", text=text))

    def feature(self, name: str) -> Feature:
        """A feature of compat.hook_table that records this run: its hooks pause while the run is paused."""
        return Feature(name, note=self.note, is_paused=lambda: self.is_paused)

    def unpaused(self, name: str) -> Feature:
        """The same, whose hooks do not pause."""
        return Feature(name, note=self.note)

    def named(self, frame: str) -> str:
        """The frame's name in the session, by torch's compile id."""
        return self._ids.get(frame, frame)

    def frame(self, frame: str) -> FrameCapture:
        """The frame with torch's compile id `frame`; of several (Dynamo was reset) the last."""
        name = self._ids.setdefault(frame, frame)
        if name not in self.frames:
            self.frames[name] = FrameCapture(name, self.run, self.emit)
        return self.frames[name]

    def started(self, frame: str) -> Frame | None:
        """The frame as torch reported it at its start, by the session's name."""
        return self._started.get(frame)

    def check(self, graph: Graph) -> list[Violation]:
        """Check the graph against the run's accelerator; violations are stored and become an event."""
        if self.accelerator is None:
            return []
        rules = rules_for_stage(graph.id.stage, self.accelerator.rules)
        violations = list(Checker(graph).check(rules).violations())
        if violations:
            self.violations += violations
            self.emit(events.ViolationsFound(run=self.run, violations=tuple(violations)))
        return violations

    def rules_without_graphs(self) -> list[str]:
        """The rules for stages of which this run has no graph."""
        stages = {graph.stage for frame in self.frames.values() for graph in frame.graphs}
        rules = self.accelerator.rules if self.accelerator else ()
        return [rule.name for rule in rules if rule.enabled and rule.stages and stages.isdisjoint(rule.stages)]

    def save_graph(self, graph: GraphId, gm: GraphModule, inputs: list[object]) -> None:
        """Store a copy of the graph (compilers change theirs) and the values of its call."""
        kept = [_on_host(value) for value in inputs] if self.on_host else inputs
        self.saved_graphs[graph] = SavedGraph(GraphModule(gm, _copied(gm)), kept, torch.is_grad_enabled())

    # Input from the trace

    def frame_started(self, frame: Frame) -> None:
        """A compile begins. After torch.compiler.reset() ids start again from 0/0: the new frame is named 0/0#2."""
        name = self._ids.get(frame.id, frame.id)
        if name in self.frames and (name in self._ended or self.frames[name].finished):
            number = 2 + sum(known.startswith(f"{frame.id}#") for known in self.frames)
            name = f"{frame.id}#{number}"
            self._ids[frame.id] = name
        code = frame.id.rpartition("/")[0]
        is_known = not self.has_compared or any(known.rpartition("/")[0] == code for known in self._ids)
        self.frame(frame.id)
        self.stages.forget(name)
        failed = tuple(self.failed_guards.pop(frame.id, ()))
        if (reason := self.outcomes.started(frame)) and is_known:  # else only a comparison compiled it before
            self.emit(events.Recompiled(run=self.run, frame=name, reason=reason, failed=failed))
        self._started[name] = Frame(name, frame.function, frame.file, frame.line, self.parent())
        self.emit(events.FrameStarted(run=self.run, frame=self._started[name]))

    def restarted(self, frame: str) -> None:
        """torch restarts the trace of a frame while lowering: its graphs so far are dropped."""
        dropped = self.frame(frame)
        name = dropped.frame
        dropped.finished = True
        self.frames[name] = FrameCapture(name, self.run, self.emit)
        self.stages.forget(name)
        self.violations = [violation for violation in self.violations if violation.node.graph.frame != name]
        self.saved_graphs = {graph: saved for graph, saved in self.saved_graphs.items() if graph.frame != name}
        if name in self._started:
            self.emit(events.FrameStarted(run=self.run, frame=self._started[name]))

    def frame_ended(self, frame: str, problem: Problem | None) -> None:
        """The frame's metrics arrived. With a problem it was given up, which may be a graph break."""
        if (graph_break := self.outcomes.ended(frame, problem)) is not None:
            self._emit_break(graph_break)

    def frame_erred(self, frame: str, text: str) -> None:
        self.errors[frame] = text

    def frame_measured(self, frame: str, measured: Measured) -> None:
        """A compile is over: a later one with the same id is of another frame."""
        self._ended.add(self.named(frame))
        self.measured(self.named(frame), measured)

    def settings_read(self, compiling: Compiling) -> None:
        """Report torch's settings that are not at their defaults, with a torch.compile's own options, if they changed
        since the last report.
        """
        found = (*repros.settings(), *compiling.own_options())
        if found != self._settings:
            self._settings = found
            self.emit(events.SettingsRead(run=self.run, settings=found))

    def graph_broke(self, graph_break: GraphBreak) -> None:
        """Dynamo ended a graph, or gave a frame up; `graph_break.frame` is torch's compile id."""
        self.outcomes.broke(graph_break.frame)
        self._emit_break(graph_break)

    @property
    def has_broken(self) -> bool:
        """Whether a graph broke in this run."""
        return bool(self._breaks)

    def _emit_break(self, found: GraphBreak) -> None:
        """Emit a break in full once; for further frames with the same break only the frame."""
        key = (found.file, found.line, found.reason)
        name = self.named(found.frame)
        if key in self._breaks:
            self.emit(events.BrokeAgain(run=self.run, again=BreakAgain(self._breaks[key], name, found.way)))
            return
        self._breaks[key] = len(self._breaks)
        self.emit(events.GraphBroke(run=self.run, graph_break=replace(found, frame=name)))

    def timed(self, frame: str, part: Timed) -> None:
        """Phases of one name nest (a C++ compile in another): only the outermost is emitted."""
        if self.timekeeper is not None:
            self.timekeeper(frame, part)
        if part.name not in PHASES:
            return
        open_since = self._began.setdefault((frame, part.name), [])
        if part.began:
            open_since.append(part.at)
            if len(open_since) == 1:
                self.emit(events.PhaseChanged(run=self.run, phase=part.name, frame=frame))
        elif open_since:
            since = open_since.pop()
            if not open_since:
                self.emit(events.PhaseChanged(run=self.run, phase=part.name, frame=frame, seconds=part.at - since))

    def finish(self) -> None:
        """Read the remaining data of frames: a failed compile has not finished itself."""
        for frame in self.frames.values():
            frame.finish()
        self.stages.send()


def _copied(gm: GraphModule) -> torch.fx.Graph:
    copy = torch.fx.Graph()
    output = copy.graph_copy(gm.graph, {})
    copy.output(output)
    return copy


def _on_host(value: object) -> object:
    if not isinstance(value, torch.Tensor) or value.device.type == "cpu":
        return value
    return value.detach().cpu().requires_grad_(value.requires_grad)


_current: RunCapture | None = None


def current() -> RunCapture | None:
    """The capture in force; None outside of a session, as in a user's own `torch.compile(backend="idbg_mock")`."""
    return _current


@contextmanager
def capturing(capture: RunCapture) -> Iterator[RunCapture]:
    """Make `capture` the current one and read the trace, while it lasts."""
    global _current
    before, _current = _current, capture
    try:
        with notes_to(capture.note), read_trace(capture):
            yield capture
    finally:
        _current = before
        capture.finish()


@contextmanager
def uncaptured(*, lowers: bool = False) -> Iterator[None]:
    """Compiles in here are not part of the current run, and are not recorded. `lowers`: they are lowered as the run's,
    or refused.
    """
    global _current
    before = _current
    if before is None:
        yield
        return
    instead = RunCapture(0, lambda event: None, before.accelerator if lowers else None)
    instead.lower = before.lower if lowers else None
    _current, before.is_paused = instead, True
    try:
        yield
    finally:
        _current, before.is_paused = before, False


@contextmanager
def comparing_now() -> Iterator[None]:
    """While it lasts, the current run compares: what is compiled in here is compiled for the first time."""
    if _current is None:
        yield
        return
    capture = _current
    capture.compared.clear()
    capture.is_comparing = capture.has_compared = True
    try:
        yield
    finally:
        capture.is_comparing = False


@contextmanager
def by_itself() -> Iterator[None]:
    """Compiles in here find no session, as without idbg; the current run still reads torch's trace of them."""
    global _current
    before, _current = _current, None
    try:
        yield
    finally:
        _current = before


@contextmanager
def phase(capture: RunCapture, name: str) -> Iterator[None]:
    """A phase beside torch's: importing the program, running it."""
    capture.timed("", Timed(name, time.time(), True))
    try:
        yield
    finally:
        capture.timed("", Timed(name, time.time(), False))
