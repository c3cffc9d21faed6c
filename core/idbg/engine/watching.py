"""Record what torch.compile compiles in the user's own process, with any backend.

Torch and the program run as without idbg, but for the settings of `compat.tracing.observed` while a graph is compiled.
What was compiled earlier is not compiled again, and not recorded.
"""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch.fx import GraphModule

from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.accelerators.registry import NO_RULES
from idbg.engine import backends
from idbg.engine.backends import TargetBackend
from idbg.engine.backends.program_backend import ProgramBackend
from idbg.engine.capture.run import RunCapture, capturing, current, uncaptured
from idbg.engine.compat import backend_calls, comparing, gpu, inspecting, tracing
from idbg.engine.compat.hook_table import is_untried
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.decisions import record_all
from idbg.engine.failures.describe import failure_of, report_frames
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.in_program.graph_calls import GraphComparisons
from idbg.engine.program.environment import random_states
from idbg.engine.program.machine import machine
from idbg.engine.program.torch_compile import CurrentBackend
from idbg.schema import events
from idbg.schema.diff import sayable
from idbg.schema.graphs import GraphId
from idbg.schema.programs import Failure, Program
from idbg.traces.frame import Emit


class Watched(RunCapture):
    """The data of one watch. `backends`: those that were called, as torch.compile got them."""

    def __init__(self, run: int, emit: Emit, accelerator: Accelerator | None) -> None:
        super().__init__(run, emit, accelerator)
        self.backends: list[str] = []
        self.backend_called: Callable[[str], None] = lambda backend: None
        self.comparisons: GraphComparisons | None = None  # of the graphs, where their numbers are compared

    def save_graph(self, graph: GraphId, gm: GraphModule, inputs: list[object]) -> None:
        """Do nothing: a test's tensors end with the test, and no repro is written from here."""

    def called(self, backend: str) -> None:
        """This backend gets a graph."""
        if backend not in self.backends:
            self.backends.append(backend)
            self.backend_called(backend)


@contextmanager
def watching(capture: Watched) -> Iterator[None]:
    """While it lasts, compiles of this thread are captured, by the innermost watch.

    In a fork of a process whose torch.compile compiles for a target, that goes on for the same target.
    """
    outer = current()
    if outer is not None:
        capture.lower, capture.lowered_by = outer.lower, outer.lowered_by

    def around(backend: Compiler, gm: GraphModule, inputs: list[object]) -> Compiled:
        if current() is not capture:
            return backend(gm, inputs)
        inside = backend_calls.innermost(backend)
        if capture.lower is not None and isinstance(inside, CurrentBackend):
            capture.called(capture.lowered_by(inside.arguments))
            return backend(gm, inputs)
        return _captured(capture, backend, gm, inputs)

    with uncaptured(), capturing(capture), record_all(capture), backend_calls.replace_backend_calls(around):
        yield


def _captured(capture: Watched, own: Compiler, gm: GraphModule, inputs: list[object]) -> Compiled:
    rules, inside = capture.accelerator, backend_calls.innermost(own)
    known = len(inside.violations) if isinstance(inside, TargetBackend) else 0
    backend = ProgramBackend(own, checks=rules is not None)
    capture.called(backend.name)
    held = comparing.without_checkpoints(gm) if capture.comparisons is not None else gm
    compiled = TargetBackend(backend, rules or parse(NO_RULES), strict=False)(gm, inputs)
    if (
        capture.comparisons is not None
        and (frame := capture.started(capture.frame(tracing.current_frame()).frame)) is not None
    ):
        compiled = capture.comparisons.watched(frame, backend.name, held, compiled)
    if rules is None and isinstance(inside, TargetBackend) and (found := inside.violations[known:]):
        capture.violations += found
        capture.emit(events.ViolationsFound(run=capture.run, violations=found))
    return compiled


def ended(capture: Watched, error: BaseException | None, program: Program) -> Failure | None:
    """Report failed frames, and return the failure of this error, if there is one."""
    backend = capture.backends[0] if capture.backends else ""
    report_frames(capture, error, program, backend)
    return failure_of(error, program, backend) if error is not None else None


class Apart:
    """A function or module that is compiled separately, and leaves the process's compiled code as it is.

    `backend` is one of ours or torch's, by name. Raises BadInput for an unknown name.
    """

    def __init__(self, function: Compiled, backend: str, dynamic: bool | None = None) -> None:
        self._private = inspecting.Private()
        self._backend = backends.find(backend)
        plain = comparing.uncompiled(function)
        self._called = inspecting.compiled(inspecting.private_of(plain, self._private), self._compile, dynamic)

    def call(self, capture: Watched, *args: object, **kwargs: object) -> object:
        """Call it, and capture its compiles. Raises what it raises."""
        put_back = random_states()
        try:
            with (
                inspecting.state_restored(self._private),
                uncaptured(),
                capturing(capture),
                record_all(capture),
            ):
                return self._called(*args, **kwargs)
        finally:
            put_back()

    def end(self) -> None:
        """Free the compiled code."""
        self._private.end()

    def _compile(self, gm: GraphModule, inputs: list[object]) -> Compiled:
        capture = current()
        assert isinstance(capture, Watched)
        capture.called(self._backend.name)
        rules = capture.accelerator or parse(NO_RULES)
        return TargetBackend(self._backend, rules, strict=False)(gm, inputs)


def compared(capture: Watched, diff: ModelDiff) -> None:
    """Run a comparison whose test side is a backend by name or of the caller's own; its report becomes an event.

    Like each comparison, it resets Dynamo.
    """
    test = diff.test
    if not isinstance(test, TargetBackend):
        backend = backends.find(test) if isinstance(test, str) else ProgramBackend(test, checks=False)
        test = TargetBackend(backend, parse(NO_RULES), strict=False)
    with uncaptured(), capturing(capture), record_all(capture):
        report = replace(diff, test=test).begin().run()
    capture.emit(events.Compared(run=capture.run, report=sayable(report)))


def this_process(*, with_machine: bool = True) -> events.WorkerStarted:
    """This process, as an event. An unused GPU is not initialized: a test may fork later."""
    gpus = torch.cuda.device_count() if gpu.in_use() else 0
    return events.WorkerStarted(
        pid=os.getpid(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        devices=("cpu", *(f"cuda:{index}" for index in range(gpus))),
        seconds=0.0,
        machine=machine() if with_machine else None,
        captures="untried" if is_untried(str(torch.__version__)) else "all",
    )
