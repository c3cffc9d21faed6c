"""What does torch.compile compile in the user's own process, whichever backend it asks for?

Nothing of torch's or of the program's is otherwise than without us but what `compat.tracing.observed` says, and that
only while a graph is compiled. What was compiled before the watch began is not compiled again, and not seen.
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
from idbg.engine.capture.frame import Emit
from idbg.engine.capture.run import RunCapture, capturing, current, uncaptured
from idbg.engine.compat import backend_calls, comparing, gpu, inspecting
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.decisions import all_heard
from idbg.engine.failures.describe import failure_of
from idbg.engine.failures.frames import tell_frames
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.program.environment import random_states
from idbg.engine.program.machine import machine
from idbg.schema import events
from idbg.schema.diff import sayable
from idbg.schema.graphs import GraphId
from idbg.schema.programs import Failure, Program


class Watched(RunCapture):
    """What is seen of one watch. `backends` are those that were called, as torch.compile was given them."""

    def __init__(self, run: int, emit: Emit, accelerator: Accelerator | None) -> None:
        super().__init__(run, emit, accelerator)
        self.backends: list[str] = []
        self.told: Callable[[str], None] = lambda backend: None

    def hold(self, graph: GraphId, gm: GraphModule, inputs: list[object]) -> None:
        """Nothing: a test's tensors end with the test, and no repro is written from here."""

    def called(self, backend: str) -> None:
        """A graph is given to this backend."""
        if backend not in self.backends:
            self.backends.append(backend)
            self.told(backend)


@contextmanager
def watching(capture: Watched) -> Iterator[None]:
    """While it lasts, whatever is compiled in this thread is captured; a watch within another has it for itself."""

    def met(own: Compiler, gm: GraphModule, inputs: list[object]) -> Compiled:
        if current() is not capture:
            return own(gm, inputs)
        return _met(capture, own, gm, inputs)

    with uncaptured(), capturing(capture), all_heard(capture), backend_calls.backend_calls_met(met):
        yield


def _met(capture: Watched, own: Compiler, gm: GraphModule, inputs: list[object]) -> Compiled:
    rules, inside = capture.accelerator, backend_calls.innermost(own)
    known = len(inside.violations) if isinstance(inside, TargetBackend) else 0
    backend = ProgramBackend(own, checks=rules is not None)
    capture.called(backend.name)
    compiled = TargetBackend(backend, rules or parse(NO_RULES), strict=False)(gm, inputs)
    if rules is None and isinstance(inside, TargetBackend) and (found := inside.violations[known:]):
        capture.violations += found
        capture.emit(events.ViolationsFound(run=capture.run, violations=found))
    return compiled


def ended(capture: Watched, error: BaseException | None, program: Program) -> Failure | None:
    """Tell what became of single frames, and give why the watch ended with this error, if it did."""
    backend = capture.backends[0] if capture.backends else ""
    tell_frames(capture, error, program, backend)
    return failure_of(error, program, backend) if error is not None else None


class Apart:
    """A function or module that is compiled apart from what the process has compiled of it, and leaves no trace there.

    `backend` is one of ours or torch's, by name. Raises BadInput where there is none of that name.
    """

    def __init__(self, function: Compiled, backend: str, dynamic: bool | None = None) -> None:
        self._private = inspecting.Private()
        self._backend = backends.find(backend)
        plain = comparing.uncompiled(function)
        self._called = inspecting.compiled(inspecting.private_of(plain, self._private), self._compile, dynamic)

    def call(self, capture: Watched, *args: object, **kwargs: object) -> object:
        """What it gives, compiled where what is compiled does not fit; all of that is captured. Raises what it does."""
        put_back = random_states()
        try:
            with (
                inspecting.left_as_it_was(self._private),
                uncaptured(),
                capturing(capture),
                all_heard(capture),
            ):
                return self._called(*args, **kwargs)
        finally:
            put_back()

    def end(self) -> None:
        """Let go of what was compiled."""
        self._private.end()

    def _compile(self, gm: GraphModule, inputs: list[object]) -> Compiled:
        capture = current()
        assert isinstance(capture, Watched)
        capture.called(self._backend.name)
        rules = capture.accelerator or parse(NO_RULES)
        return TargetBackend(self._backend, rules, strict=False)(gm, inputs)


def compared(capture: Watched, diff: ModelDiff) -> None:
    """Run a comparison whose test side is a backend by name or of the caller's own; the report is told.

    As a comparison does, it resets what Dynamo has compiled.
    """
    test = diff.test
    if not isinstance(test, TargetBackend):
        backend = backends.find(test) if isinstance(test, str) else ProgramBackend(test, checks=False)
        test = TargetBackend(backend, parse(NO_RULES), strict=False)
    with uncaptured(), capturing(capture), all_heard(capture):
        report = replace(diff, test=test).begin().run()
    capture.emit(events.Compared(run=capture.run, report=sayable(report)))


def this_process() -> events.WorkerStarted:
    """What compiles, as a session tells it. A GPU that nothing has used yet is not asked: a test may want to fork."""
    gpus = torch.cuda.device_count() if gpu.in_use() else 0
    return events.WorkerStarted(
        pid=os.getpid(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        devices=("cpu", *(f"cuda:{index}" for index in range(gpus))),
        seconds=0.0,
        machine=machine(),
    )
