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
from torch.fx import GraphModule

from idbg.accelerators.model import Accelerator
from idbg.engine.capture.frame import FrameCapture
from idbg.engine.capture.trace import read_trace
from idbg.engine.compat import inspecting, registrations, repros, tracing
from idbg.engine.compat.hooks import Feature
from idbg.engine.compat.lowering import Compiled
from idbg.engine.compat.names import notes_to
from idbg.schema import events
from idbg.schema.graphs import Frame, GraphId
from idbg.traces.frame import Emit
from idbg.traces.records import Measured, Timed
from idbg.traces.run import TracedRun

# how a run lowers a Dynamo graph: (graph module, inputs, options for the target's backend, and the arguments of the
# program's own torch.compile where they name another backend)
Lower = Callable[[GraphModule, list[object], dict[str, object], Mapping[str, object]], Compiled]

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


class RunCapture(TracedRun[FrameCapture]):
    """The data of one run, as events. Rules are checked on each graph that a backend gets."""

    def __init__(self, run: int, emit: Emit, accelerator: Accelerator | None) -> None:
        super().__init__(run, emit, accelerator)
        self.is_paused = False  # while something else compiles: see `uncaptured`
        self.is_comparing = False  # while the program's own compiled function is compared
        self.is_later_call = False  # one whose function was compared before
        self.has_compared = False
        self.compared: Counter[Code] = Counter()  # compiles in there, until the program's own call is over
        self.saved_graphs: dict[GraphId, SavedGraph] = {}
        self.compiles: dict[str, Compiling] = {}
        self.lower: Lower | None = None
        self.on_host = False  # saved inputs are copied to the CPU: the device may be lost before the run ends
        self.fallback_messages: list[str] = []  # of the backend's package
        self.split_numbers = count()
        self.lowered_by: Callable[[Mapping[str, object]], str] = lambda arguments: ""  # the backend of `lower`
        self.children: Callable[[], int] = lambda: 0  # how many processes that the program started have compiled
        self.own_process = False  # nothing but the session runs in this process: settings that stay are no harm
        self.stages.current = lambda: (tracing.current_frame(), tracing.compiled_part())
        self._settings: tuple[str, ...] | None = None

        # set while Dynamo's decisions are recorded
        self.find_parent: Callable[[], str] = lambda: ""
        self.record_result: Callable[[str, Measured], None] = lambda name, measured: None
        self.describe: Callable[[Frame], Frame] = lambda frame: frame

    def new_frame(self, name: str) -> FrameCapture:
        return FrameCapture(name, self.run, self.emit)

    def measured(self, name: str, measured: Measured) -> None:
        self.record_result(name, measured)

    def parent(self) -> str:
        return self.find_parent()

    def described(self, frame: Frame) -> Frame:
        return self.describe(frame)

    def counts_recompiles(self, code: str) -> bool:
        """Not of a code that only a comparison compiled before."""
        return not self.has_compared or self.is_known(code)

    def feature(self, name: str) -> Feature:
        """A feature of compat.hook_table that records this run: its hooks pause while the run is paused."""
        return Feature(name, note=self.note, is_paused=lambda: self.is_paused)

    def unpaused(self, name: str) -> Feature:
        """The same, whose hooks do not pause."""
        return Feature(name, note=self.note)

    def rules_without_graphs(self) -> list[str]:
        """The rules for stages of which this run has no graph."""
        stages = {graph.stage for frame in self.frames.values() for graph in frame.graphs}
        rules = self.accelerator.rules if self.accelerator else ()
        return [rule.name for rule in rules if rule.enabled and rule.stages and stages.isdisjoint(rule.stages)]

    def save_graph(self, graph: GraphId, gm: GraphModule, inputs: list[object]) -> None:
        """Store a copy of the graph (compilers change theirs) and the values of its call."""
        kept = [_on_host(value) for value in inputs] if self.on_host else inputs
        self.saved_graphs[graph] = SavedGraph(GraphModule(gm, _copied(gm)), kept, torch.is_grad_enabled())

    def restarted(self, frame: str) -> None:
        """torch restarts the trace of a frame while lowering: its graphs so far are dropped."""
        dropped = self.frame(frame)
        name = dropped.frame
        dropped.finished = True
        self.frames[name] = self.new_frame(name)
        self.stages.forget(name)
        self.violations = [violation for violation in self.violations if violation.node.graph.frame != name]
        self.saved_graphs = {graph: saved for graph, saved in self.saved_graphs.items() if graph.frame != name}
        if (started := self.started(name)) is not None:
            self.emit(events.FrameStarted(run=self.run, frame=started))

    def settings_read(self, compiling: Compiling) -> None:
        """Report torch's settings that are not at their defaults, with a torch.compile's own options, if they changed
        since the last report.
        """
        found = (*repros.settings(), *compiling.own_options())
        if found != self._settings:
            self._settings = found
            self.emit(events.SettingsRead(run=self.run, settings=found))


def _copied(gm: GraphModule) -> torch.fx.Graph:
    """A copy of its graph: compilers change theirs."""
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
        with notes_to(capture.note), read_trace(capture, capture.feature("compile trace")):
            yield capture
    finally:
        _current = before
        capture.finish()


@contextmanager
def uncaptured(*, lowers: bool = False) -> Iterator[None]:
    """Compiles in here are not part of the current run: neither idbg records them, nor does torch count them for the
    program. `lowers`: they are lowered as the run's, or refused.
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
        with inspecting.counts_restored():
            yield
    finally:
        _current, before.is_paused = before, False


@contextmanager
def comparing_now(*, later: bool = False) -> Iterator[None]:
    """While it lasts, the current run compares: what is compiled in here is compiled for the first time, but for what
    a search cleared, at a `later` call.
    """
    if _current is None:
        yield
        return
    capture = _current
    capture.compared.clear()
    capture.is_comparing, capture.is_later_call, capture.has_compared = True, later, True
    try:
        yield
    finally:
        capture.is_comparing = capture.is_later_call = False


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
