"""Record how backends split graphs between what they compile and eager, and how long each side takes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from msgspec.structs import replace
from torch import nn
from torch.fx import GraphModule, Node
from torch.utils.hooks import RemovableHandle

from idbg.engine.capture.fx import native_call, user_line
from idbg.engine.capture.run import RunCapture
from idbg.engine.compat import tracing
from idbg.engine.compat.partitions import Split, observe_splits
from idbg.schema.decisions.backends import GraphSplit, NativeCall, SplitCalls
from idbg.schema.graphs import Graph, GraphId


@contextmanager
def record(capture: RunCapture) -> Iterator[None]:
    """Each split becomes an event at once, and its calls one at the end."""
    feature = capture.feature("backend partitions")
    timed: list[_TimedSplit] = []

    def split(found: Split, fused: GraphModule) -> None:
        captured = capture.frame(tracing.current_frame())
        frame, dynamo = captured.frame, captured.graphs.get(GraphId(captured.frame, "dynamo"))
        calls = (native_call(node, "alone" if is_supported else "unsupported") for node, is_supported in found.native)
        native = tuple(
            _with_users_line(call, node, dynamo) for call, (node, _) in zip(calls, found.native, strict=True)
        )
        compiled = tuple(tuple(node.name for node in nodes) for nodes in found.compiled.values())
        number = next(capture.split_numbers)
        capture.decided(frame, GraphSplit(number=number, backend=found.package, compiled=compiled, native=native))
        timed.append(_TimedSplit(fused, number, frame, [*found.compiled], capture.fallback_messages))

    with observe_splits(feature, split):
        try:
            yield
        finally:
            for each in timed:
                capture.decided(each.frame, *each.end())


def _with_users_line(call: NativeCall, node: Node, dynamo: Graph | None) -> NativeCall:
    """A backend that traces Dynamo's graph again knows lines of that graph's code alone: each assigns one node."""
    code = user_line(node.meta.get("stack_trace") or "")[2]
    origin = dynamo.by_name.get(code.partition(" = ")[0]) if dynamo is not None else None
    if not call.file.startswith("<eval_with_key>") or origin is None:
        return call
    return replace(call, file=origin.file, line=origin.line)


class _Timed(nn.Module):
    """A module of a partition, in its place for one call of the graph."""

    def __init__(self, module: nn.Module, called: Callable[[float, str], None], messages: list[str]) -> None:
        super().__init__()
        self._held, self._called, self._messages = [module], called, messages  # in a list: no parameter of this one

    def forward(self, *args: object) -> object:
        known, began = len(self._messages), time.perf_counter()
        try:
            return self._held[0](*args)
        finally:
            message = self._messages[known] if len(self._messages) > known else ""
            self._called(time.perf_counter() - began, message)


@dataclass
class _TimedSplit:
    """Times the calls of a split graph. A backend may replace the graph's modules before it calls it: those that are
    there at a call are timed.
    """

    graph: GraphModule
    number: int
    frame: str
    order: list[int]  # the numbers of the modules in the order of the graph
    messages: list[str]  # that the backend falls back, so far
    count: int = 0
    seconds: float = 0.0
    compiled_seconds: float = 0.0
    failed: dict[int, str] = field(default_factory=dict)
    is_on_cpu: bool = True
    _began: float = 0.0
    _own: dict[str, nn.Module] = field(default_factory=dict)
    _handles: list[RemovableHandle] = field(default_factory=list)

    def __post_init__(self) -> None:
        after = self.graph.register_forward_hook(self._after, always_call=True)
        self._handles = [self.graph.register_forward_pre_hook(self._before), after]

    def end(self) -> Iterator[SplitCalls]:
        """What is known of its calls; nothing where there were none."""
        for handle in self._handles:
            handle.remove()
        if self.count:
            is_known = self.is_on_cpu and self.count > 1
            yield SplitCalls(
                number=self.number,
                calls=self.count - 1,
                seconds=self.seconds if is_known else None,
                native_seconds=max(0.0, self.seconds - self.compiled_seconds) if is_known else None,
                failed=tuple(sorted(self.failed.items())),
            )

    def _before(self, graph: nn.Module, args: tuple[object, ...]) -> None:
        self.is_on_cpu &= all(arg.device.type == "cpu" for arg in args if isinstance(arg, torch.Tensor))
        self._own = {name: module for name, module in graph.named_children() if name.startswith("fused_")}
        for name, module in self._own.items():
            called = partial(self._called, self.order.index(int(name.rpartition("_")[2])))
            setattr(graph, name, _Timed(module, called, self.messages))
        self._began = time.perf_counter()

    def _after(self, graph: nn.Module, args: object, output: object) -> None:
        seconds = time.perf_counter() - self._began
        for name, module in self._own.items():
            setattr(graph, name, module)
        self.count += 1
        if self.count > 1:  # backends compile at the first call
            self.seconds += seconds

    def _called(self, index: int, seconds: float, message: str) -> None:
        if message:
            self.failed.setdefault(index, message)
        if self.count and index not in self.failed:
            self.compiled_seconds += seconds
