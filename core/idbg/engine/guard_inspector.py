"""Compile and call a function of the user's own process once, and record its graphs, guards and breaks."""

import inspect
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, ParamSpec

from torch.fx import GraphModule

from idbg.engine.capture.run import RunCapture, capturing, uncaptured
from idbg.engine.compat import comparing, dynamo, inspecting, tracing
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.decisions import frames, guards, recompiles
from idbg.engine.program.environment import random_states
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run

P = ParamSpec("P")


class FunctionInspector(Generic[P]):
    """Records what torch.compile does with a function or a module, one call at a time: see `idbg.GuardInspector`."""

    def __init__(self, function: Callable[P, object], *, backend: str = "eager", dynamic: bool | None = None) -> None:
        if not callable(function) or inspect.isclass(function):
            raise BadInput(
                f"a GuardInspector looks at a function or a module, and was given {_said(function)}",
                hint="give it what is called, not its result and not a class",
            )
        if backend not in dynamo.backend_names():
            raise BadInput(f"torch knows no backend {backend!r}", hint='use "eager", "aot_eager" or "inductor"')
        self.name = _name(function)
        self._look = look = _Look(backend, dynamic)
        self._called = look.ready(comparing.uncompiled(function))
        weakref.finalize(self, look.private.end)

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Compile and call the function once. What it raises is raised."""
        return self._look.at(self.name, self._called, args, kwargs)


class _Look:
    """What an inspector holds from one call to the next, and what a call is made with."""

    def __init__(self, backend: str, dynamic: bool | None) -> None:
        self.private = inspecting.Private()
        self.dynamic = dynamic
        self.lower: Compiler = dynamo.lookup_backend(backend)
        self.capture: RunCapture | None = None

    def ready(self, function: Compiled) -> Compiled:
        """What is called in place of the function."""
        apart = inspecting.private_of(function, self.private)
        return inspecting.compiled(apart, self._compile, self.dynamic)

    def _compile(self, gm: GraphModule, inputs: Sequence[object]) -> Compiled:
        assert self.capture is not None and self.capture.lower is not None
        frame = self.capture.frame(tracing.current_frame())
        frame.dynamo(gm)
        try:
            return self.capture.lower(gm, list(inputs), {}, {})
        finally:
            frame.finish()

    def at(self, name: str, called: Compiled, args: tuple[object, ...], kwargs: dict[str, object]) -> Run:
        """Record one call."""
        run = Run(1, Program(name), Target(backend="eager"), time.time())
        capture = self.capture = RunCapture(1, run.apply, None)
        capture.lower = lambda gm, inputs, *given: self.lower(gm, inputs)
        put_back = random_states()
        try:
            with inspecting.state_restored(self.private), uncaptured(), capturing(capture), _heard(capture):
                called(*args, **kwargs)
        finally:
            put_back()
            self.capture = None
        return run


@contextmanager
def _heard(capture: RunCapture) -> Iterator[None]:
    with frames.record(capture), recompiles.record(capture), guards.record(capture):
        yield


def _name(function: object) -> str:
    plain = comparing.uncompiled(function)
    return getattr(plain, "__qualname__", None) or type(plain).__qualname__


def _said(value: object) -> str:
    return f"the class {value.__qualname__}" if inspect.isclass(value) else f"a {type(value).__qualname__}"
