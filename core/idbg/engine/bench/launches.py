"""Route each launch of an Inductor kernel through a function of ours."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from idbg.engine.compat import comparing
from idbg.engine.instrument.wrapper_code import Instrumented, output_code
from idbg.engine.instrument.wrapper_lines import Launch, routed
from idbg.schema.code import Kernel

AROUND = "__idbg_around__"  # what the wrappers call
Around = Callable[..., object]
"""Called with a launch's number, the function and its arguments in place of the function; gives what it returns."""


@dataclass(frozen=True)
class LaunchSite:
    """A statement that launches a kernel; `kernel` is None if Inductor's code neither defines nor lists it."""

    frame: str
    graph: comparing.InductorGraph
    launch: Launch
    kernel: Kernel | None

    @property
    def kind(self) -> str:
        """How it was generated: "cpp" or "triton"; "extern" for an op that Inductor calls directly."""
        if self.kernel is not None:
            return self.kernel.language
        return next((kind for kind in ("cpp", "triton") if self.launch.name.startswith(f"{kind}_")), "extern")


class Launches:
    """The numbered launches of all graphs that were compiled since it began. `problem`: why some are missing."""

    def __init__(self) -> None:
        self.problem = ""
        self.all: list[LaunchSite] = []
        self._wrappers: list[Instrumented] = []

    def compiled(self, graph: comparing.InductorGraph) -> None:
        """Number the launches of a graph that Inductor has compiled, and prepare its wrapper."""
        if graph.is_cpp_wrapper:
            self.problem = "kernels cannot be timed under a C++ wrapper (Inductor's option cpp_wrapper)"
            return
        if any(graph.module is known.graph.module for known in self.all):
            return
        try:
            code = output_code(graph)
            module, launches = routed(code, AROUND, first=len(self.all))
        except ValueError as error:
            self.problem = f"a wrapper of Inductor's could not be read: {error}"
            return
        kernels = {kernel.name: kernel for kernel in code.kernels}
        self.all += [LaunchSite(code.frame, graph, launch, kernels.get(launch.name)) for launch in launches]
        self._wrappers.append(Instrumented(graph.module, module, AROUND))

    def cannot_read(self, why: str) -> None:
        """Called for a graph whose launches cannot be found."""
        self.problem = self.problem or why

    @contextmanager
    def through(self, around: Around) -> Iterator[None]:
        """While this lasts, each launch calls `around` in place of its kernel."""
        for wrapper in self._wrappers:
            wrapper.start({AROUND: around})
        try:
            yield
        finally:
            for wrapper in self._wrappers:
                wrapper.stop()


@contextmanager
def launches() -> Iterator[Launches]:
    """While this lasts, Inductor compiles without its caches, and the launches are added to the result."""
    watched = Launches()
    with comparing.observe_uncached_graphs(watched.compiled, watched.cannot_read):
        yield watched


class Clock:
    """Times each launch: with CUDA events those in `on_gpu`, with the processor's clock the others."""

    def __init__(self, on_gpu: Collection[int] = ()) -> None:
        self.on_gpu = set(on_gpu)
        self._taken: list[tuple[int, float]] = []
        self._pairs: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []
        self._spare: dict[int, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {number: [] for number in on_gpu}

    def __call__(self, number: int, call: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        if number in self.on_gpu:
            return self._by_events(number, call, *args, **kwargs)
        began = time.perf_counter_ns()
        result = call(*args, **kwargs)
        self._taken.append((number, (time.perf_counter_ns() - began) / 1e3))
        return result

    def _by_events(self, number: int, call: Callable[..., object], /, *args: object, **kwargs: object) -> object:
        spare = self._spare[number]  # an event is of one device, and so is a launch
        begin, end = spare.pop() if spare else _events()
        begin.record()
        result = call(*args, **kwargs)
        end.record()
        self._pairs.append((number, begin, end))
        return result

    def read(self) -> list[tuple[int, float]]:
        """The number and the microseconds of each launch since the last call."""
        if self._pairs:
            torch.cuda.synchronize()
        taken = self._taken + [(number, 1e3 * begin.elapsed_time(end)) for number, begin, end in self._pairs]
        for number, begin, end in self._pairs:
            self._spare[number].append((begin, end))
        self._taken, self._pairs = [], []
        return taken


def _events() -> tuple[torch.cuda.Event, torch.cuda.Event]:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    return begin, end
