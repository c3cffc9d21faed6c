"""Record what a side compiles, live: the graphs of each frame, stage by stage, its wrappers, and the call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch.fx import GraphModule

from idbg.engine.compat import comparing, stages, tracing
from idbg.engine.compat.passes import AppliedPattern
from idbg.engine.kerneldiff.kernels.observe import Observation
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.sides.nan_origin import current_user_line
from idbg.engine.kerneldiff.sides.run import Call

Phase = Literal["pre_grad", "joint_passes", "partitioned", "post_grad"]


@dataclass(frozen=True)
class GraphPass:
    """A pass that changed the graph; `made_by` is the function, `patterns` the patterns of the pattern matcher
    that it applied.
    """

    phase: Phase
    name: str
    made_by: object
    before: GraphModule
    after: GraphModule
    patterns: tuple[AppliedPattern, ...] = ()


@dataclass
class FrameStages:
    """The graphs of one frame. `dynamo` and `inputs`: Dynamo's graph and the inputs it was traced with; `grad`:
    whether gradients were recorded; `caller`: the program's line that called the frame; `autocast`: the dtype
    by device; `parts`: the graphs that Inductor compiled, in order; `watches`: their compiled code. Under freezing
    `parameters` are the first arguments of the graphs before it, and `preserved` the places of all that it left.
    """

    frame: str
    dynamo: GraphModule
    inputs: list[object]
    grad: bool
    caller: tuple[str, int] = ("", 0)
    autocast: Mapping[str, torch.dtype] = field(default_factory=dict)
    pre_grad: GraphModule | None = None
    joint: GraphModule | None = None
    joint_passes: GraphModule | None = None
    parts: list[GraphModule] = field(default_factory=list)
    passes: list[list[GraphPass]] = field(
        default_factory=lambda: [[]]
    )  # of Dynamo's and the joint graph; then of each part
    decompositions: dict[object, Callable[..., object]] = field(default_factory=dict)
    watches: dict[int, Watch] = field(default_factory=dict)  # by the place of the part
    parameters: list[object] = field(default_factory=list)
    preserved: tuple[int, ...] | None = None
    own_draws: bool = False  # they are judged by the joint graph, with Inductor's own random operators

    @contextmanager
    def as_called(self) -> Iterator[None]:
        """Record gradients and autocast as around the program's own call."""
        with ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for device, dtype in self.autocast.items():
                stack.enter_context(torch.autocast(device, dtype))
            yield


def users_place(frame: FrameStages, file: str, line: int) -> tuple[str, int]:
    """The place of a node of this frame; inside of torch (an optimizer's step), that of the frame's call."""
    return frame.caller if file and stages.is_torchs(file) and frame.caller[0] else (file, line)


class CompileRecord(Observation):
    """What one side compiles, captured so that the same code can be observed later without another compile: `frames`,
    and the `call` that runs them. torch's hooks call its methods in the order of the stages.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[FrameStages] = []
        self.call: Call | None = None
        self._phase: Phase = "pre_grad"
        self._found = 0  # graphs in a cache
        self._is_observable = True

    def compiling(self, compile: Callable[[Call], Call]) -> Callable[[Call], Call]:
        """The same compile function; what it returns is the record's call."""

        def recorded(model: Call) -> Call:
            self.call = compile(model)
            return self.call

        return recorded

    @contextmanager
    def captured(self) -> Iterator[None]:
        """While it lasts, what is compiled is recorded."""
        found = comparing.graphs_found()
        with (
            tracing.observed(),
            stages.observe_stages(self),
            comparing.observe_graphs(self._loaded, self.cannot_watch),
        ):
            try:
                yield
            finally:
                self._found += comparing.graphs_found() - found

    @contextmanager
    def begun(self) -> Iterator[None]:
        with stages.observe_stages(self), super().begun():
            yield

    def _loaded(self, graph: comparing.InductorGraph) -> None:
        self._is_observable &= comparing.is_observable()
        self.compiled(graph)

    @property
    def is_whole(self) -> bool:
        """Whether each of its graphs was captured: none came from a cache, and each can be observed."""
        parts = sum(len(frame.parts) for frame in self.frames)
        seen = parts == len(self.watches) > 0 and not self._found and not self.problem
        return seen and self._is_observable and self.call is not None

    @property
    def _last(self) -> FrameStages:
        return self.frames[-1]

    def dynamo(self, gm: GraphModule, inputs: Sequence[object] = ()) -> None:
        """Dynamo's graph: a new frame."""
        frame = tracing.frame_name()
        self._phase = "pre_grad"
        values = [_as_it_is(value) for value in inputs]
        self.frames.append(FrameStages(frame, gm, values, torch.is_grad_enabled(), current_user_line(), _autocast()))
        self._last.decompositions = stages.decompositions()

    def pre_grad(self, gm: GraphModule) -> None:
        """Dynamo's graph after its passes."""
        self._last.pre_grad = gm

    def joint(self, gm: GraphModule) -> None:
        """The decomposed graph."""
        self._phase = "joint_passes"
        if self.frames:
            self._last.joint = gm

    def joint_passes(self, gm: GraphModule) -> None:
        """The decomposed graph after its passes."""
        if self.frames:
            self._last.joint_passes = gm

    def freezing(self) -> None:
        """What follows is no pass of the joint graph's."""
        self._phase = "partitioned"

    def frozen(self, parameters: Sequence[object], preserved: Sequence[int]) -> None:
        """Parameters of the last frame became constants."""
        if self.frames:
            self._last.parameters, self._last.preserved = list(parameters), tuple(preserved)

    def part(self, gm: GraphModule) -> None:
        """A graph that Inductor compiles."""
        self._phase = "post_grad"
        if self.frames:
            self._last.parts.append(gm)
            self._last.passes.append([])

    def passed(
        self,
        name: str,
        made_by: object,
        before: GraphModule,
        after: GraphModule,
        patterns: Sequence[AppliedPattern],
    ) -> None:
        """A pass that changed something."""
        if self.frames:
            self._last.passes[-1].append(GraphPass(self._phase, name, made_by, before, after, tuple(patterns)))

    def watched(self, watch: Watch) -> None:
        """The compiled code of the last part."""
        super().watched(watch)
        if self.frames and self._last.parts:
            self._last.watches[len(self._last.parts) - 1] = watch


def _autocast() -> dict[str, torch.dtype]:
    return {device: torch.get_autocast_dtype(device) for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)}


def _as_it_is(value: object) -> object:
    """A detached copy that keeps requires_grad, which restoring a side resets in the program's argument."""
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
