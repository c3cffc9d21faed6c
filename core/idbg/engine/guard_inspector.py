"""Which guards does a function of the user's own process get, and where does its graph break?"""

import inspect
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, ParamSpec

from torch.fx import GraphModule

from idbg.engine.capture.run import RunCapture, capturing, uncaptured
from idbg.engine.compat import comparing, dynamo, inspecting, stages, tracing
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.decisions import frames, guards, recompiles
from idbg.engine.program.environment import random_states
from idbg.format.amounts import counted
from idbg.format.file_names import near_place
from idbg.render.text import lines
from idbg.schema.decisions.guard_report import GuardedGraph, GuardReport, Recompile
from idbg.schema.errors import BadInput
from idbg.schema.graphs import GraphId
from idbg.schema.programs import Program, Target
from idbg.schema.runs import Run
from idbg.views import guards as guards_view

P = ParamSpec("P")


class GuardInspector(Generic[P]):
    """Looks at how torch.compile would guard a function or a module, given some arguments.

    `function` may be compiled already: it is looked at as it was before. `backend` is a name that torch knows: "eager"
    (the default) has all of Dynamo's guards in the least time, "aot_eager" and "inductor" those of AOTAutograd too
    (arguments that share memory). `dynamic` is as torch.compile takes it. Raises BadInput for what cannot be called,
    and for a backend that torch does not know.
    """

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

    def inspect(self, *args: P.args, **kwargs: P.kwargs) -> GuardReport:
        """Compile and call the function once, with all that the call itself does, and tell what came of it.

        What is compiled stays with this inspector: the next call compiles again only where a guard fails, and its
        report tells which. For the rest of the process it has not happened: what is compiled there, torch's counters,
        settings and random generators are as before. What the function raises is raised.
        """
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

    def at(self, name: str, called: Compiled, args: tuple[object, ...], kwargs: dict[str, object]) -> GuardReport:
        """What a call comes to."""
        run = Run(1, Program(name), Target(backend="eager"), time.time())
        capture = self.capture = RunCapture(1, run.apply, None)
        capture.lower = lambda gm, inputs, *given: self.lower(gm, inputs)
        put_back = random_states()
        try:
            with inspecting.left_as_it_was(self.private), uncaptured(), capturing(capture), _heard(capture):
                called(*args, **kwargs)
        finally:
            put_back()
            self.capture = None
        return _told(name, run)


@contextmanager
def _heard(capture: RunCapture) -> Iterator[None]:
    with frames.heard(capture), recompiles.heard(capture), guards.heard(capture):
        yield


def _told(name: str, run: Run) -> GuardReport:
    graphs = tuple(
        GuardedGraph(frame, run.graphs.get(GraphId(frame.id, "dynamo")), run.decided.guards.get(frame.id))
        for frame in run.frames.values()
    )
    again = tuple(Recompile(each.frame, each.reason, each.failed) for each in run.recompiles)
    return GuardReport(
        graphs=graphs, breaks=tuple(run.breaks), recompiles=again, text="\n".join(_lines(name, run, again))
    )


def _lines(name: str, run: Run, again: Sequence[Recompile]) -> Iterator[str]:
    graphs = sum(graph.stage == "dynamo" for graph in run.graphs)
    counts = (graphs, "graph"), (run.times_broken, "graph break"), (len(again), "recompile")
    yield f"{name}: {', '.join(counted(number, noun) for number, noun in counts)}"
    for each in run.breaks:
        yield f"graph break at {near_place(each.file, each.line) or 'an unknown line'}: {each.reason}"
    for recompile in again:
        yield f"{recompile.frame} was compiled again: {recompile.reason}"
    for skip in (each for each in run.decided.skips if not stages.is_torchs(each.file)):
        yield f"left alone: {skip.function}, {near_place(skip.file, skip.line)}: {skip.reason}"
    if run.decided.guards:
        yield from lines(guards_view.view(run))
    else:
        yield "nothing was compiled: there is nothing in it to compile, or what was compiled for an earlier call fits"


def _name(function: object) -> str:
    plain = comparing.uncompiled(function)
    return getattr(plain, "__qualname__", None) or type(plain).__qualname__


def _said(value: object) -> str:
    return f"the class {value.__qualname__}" if inspect.isclass(value) else f"a {type(value).__qualname__}"
