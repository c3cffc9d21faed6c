"""Collect what one run compiles, as events.

Every compile, wherever in the program it starts, finds its session by `current`.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count, islice
from types import CodeType
from typing import cast

import torch
from torch.fx import GraphModule

from idbg.accelerators.model import Accelerator
from idbg.engine.capture.frame import Code, FrameCapture
from idbg.engine.capture.trace import read_trace
from idbg.engine.compat import dynamo, inspecting, registrations, repros, tracing
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
        self.followers: list[Emit] = []  # of each event of the run
        super().__init__(run, lambda event: self._send(event, emit), accelerator)
        self.is_paused = False  # while something else compiles: see `uncaptured`
        self.is_comparing = False  # while the program's own compiled function is compared
        self.is_later_call = False  # one whose function was compared before
        self.compared: Counter[Code] = Counter()  # compiles in there, until the program's own call is over
        self.compared_from: int | None = None  # how many frames there were before the last comparison
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

    def _send(self, event: events.SessionEvent, emit: Emit) -> None:
        emit(event)
        for follower in self.followers:
            follower(event)

    def new_frame(self, name: str) -> FrameCapture:
        frame = FrameCapture(name, self.run, self.emit)
        code = dynamo.code_compiled()
        frame.code = code_key(code) if code is not None else None
        return frame

    def name_of(self, code: Code, number: int) -> str:
        """The frame of the compile with this number among those of the code, of the current comparison if that has
        compiled it; "" where the run has not.
        """
        for since in (self.compared_from or 0, 0):
            names = [name for name, frame in islice(self.frames.items(), since, None) if frame.code == code]
            if names:
                return names[min(number, len(names) - 1)]
        return ""

    def measured(self, name: str, measured: Measured) -> None:
        self.record_result(name, measured)

    def parent(self) -> str:
        return self.find_parent()

    def described(self, frame: Frame) -> Frame:
        return self.describe(frame)

    def counts_recompiles(self, code: str) -> bool:
        """Not of a code that only a comparison compiled before."""
        return self.compared_from is None or self.is_known(code)

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


class _Aside(RunCapture):
    """Stands for a run where something else compiles: a frame of the run that is compiled once more has its name."""

    def __init__(self, beside: RunCapture, *, lowers: bool) -> None:
        super().__init__(0, lambda event: None, beside.accelerator if lowers else None)
        self.lower = beside.lower if lowers else None
        self.beside: RunCapture = beside.beside if isinstance(beside, _Aside) else beside

    def frame(self, frame: str) -> FrameCapture:
        if (code := dynamo.code_compiled()) is not None:
            number = frame.rpartition("/")[2]
            name = self.beside.name_of(code_key(code), int(number) if number.isdigit() else 0)
            self._ids[frame] = name or frame
        return super().frame(frame)


def code_key(code: CodeType) -> Code:
    """A code object as it is known across resets."""
    return code.co_name, code.co_filename, code.co_firstlineno


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
    try:
        with current_is(capture), notes_to(capture.note), read_trace(capture, capture.feature("compile trace")):
            yield capture
    finally:
        capture.finish()


@contextmanager
def current_is(capture: RunCapture | None) -> Iterator[None]:
    """Compiles in here find this capture, or no session, as without idbg: then frames have the names of the run, which
    still reads torch's trace of them.
    """
    global _current
    before, _current = _current, capture
    try:
        with nullcontext() if capture is None else tracing.frames_named(lambda frame: capture.frame(frame).frame):
            yield
    finally:
        _current = before


@contextmanager
def uncaptured(*, lowers: bool = False) -> Iterator[None]:
    """Compiles in here are not part of the current run: neither idbg records them, nor does torch count them for the
    program. `lowers`: they are lowered as the run's, or refused.
    """
    if (before := _current) is None:
        yield
        return
    before.is_paused = True
    try:
        with current_is(_Aside(before, lowers=lowers)), inspecting.counts_restored():
            yield
    finally:
        before.is_paused = False


@contextmanager
def comparing_now(*, later: bool = False) -> Iterator[None]:
    """While it lasts, the current run compares: what is compiled in here is the run's, and the program's own call after
    it repeats it (`capture/repeats.py`); at a `later` call, but for what a search cleared.
    """
    if (capture := _current) is None:
        yield
        return
    capture.compared.clear()
    capture.is_comparing, capture.is_later_call, capture.compared_from = True, later, len(capture.frames)
    try:
        yield
    finally:
        capture.is_comparing = capture.is_later_call = False


@contextmanager
def phase(capture: RunCapture, name: str) -> Iterator[None]:
    """A phase beside torch's: importing the program, running it."""
    capture.timed("", Timed(name, time.time(), True))
    try:
        yield
    finally:
        capture.timed("", Timed(name, time.time(), False))
