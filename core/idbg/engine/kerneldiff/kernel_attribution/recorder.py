"""Record what one launch is called with in a run, and find the launches that write over what it reads or writes.

The wrapper's `call` runs with calls of ours between its statements (instrument/). Before the launch its arguments are
copied. Each buffer that it reads or writes is compared with what was written there, for as long as it is read.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from idbg.engine.instrument.wrapper_code import Instrumented
from idbg.engine.instrument.wrapper_lines import AFTER, BEFORE, ENTER, LEAVE, Point
from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryCopies, MemoryRegion, overlap, same_bits, strided
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.schema.errors import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

RETURN = -1  # the reader that is the graph's return


@dataclass(frozen=True)
class Overwritten:
    """A buffer that had changed since the launch `writer` wrote it, when the launch `reader` read it (RETURN: the graph
    returned it).

    `by` is the launch after which the change was first seen. It is None for a change between two launches: `after`, and
    `until`, which was about to run. `shares`: the launch that wrote was given memory of the buffer.
    """

    name: str
    writer: int
    reader: int
    by: int | None
    after: int
    until: int
    shares: bool = False


@dataclass
class RecordedLaunch:
    """What the launch was called with and wrote: `values` by the names in its call, copied before it ran (for a tensor
    its region in `memory`); `node_values`, the values of its nodes' input nodes, and in `read` the name in the call
    that has such a value; `written`, the values of the buffers that it writes, with their `regions`. `ran`: all of it
    was recorded.
    """

    memory: MemoryCopies = field(default_factory=MemoryCopies)
    values: dict[str, object] = field(default_factory=dict)
    node_values: dict[str, object] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    written: dict[str, Tensor] = field(default_factory=dict)
    regions: dict[str, MemoryRegion] = field(default_factory=dict)
    overwritten: list[Overwritten] = field(default_factory=list)
    ran: bool = False
    problem: str = ""


@dataclass
class _Tracked:
    """A buffer that must not change before the last of these `readers`."""

    name: str
    value: Tensor
    copy: Tensor
    writer: int
    readers: tuple[int, ...]
    region: MemoryRegion


class LaunchRecorder:
    """Records one launch of a graph's wrapper in its next call. With `closely` each tracked buffer is compared after
    every launch, else only after launches that were given its memory and before its readers.
    """

    def __init__(self, plan: LaunchPlan, *, closely: bool = False) -> None:
        self.plan = plan
        self.closely = closely
        self.recorded = RecordedLaunch()
        self.done = False
        self._regions: dict[str, MemoryRegion] = {}
        self._tracked: dict[str, _Tracked] = {}
        self._ints: dict[str, object] = {}
        self._last = -1  # the launch that ran last
        self._arguments: Sequence[object] = ()

    @contextmanager
    def recording(self) -> "Iterator[None]":
        """While it lasts, the wrapper calls this recorder."""
        graph = self.plan.watch.graph
        hooks: Mapping[str, Callable[..., object]] = {
            ENTER: self.enter,
            BEFORE: self.before,
            AFTER: self.after,
            LEAVE: self.leave,
        }
        instrumented = Instrumented(graph.module, self.plan.wrapper.instrumented(), *hooks)
        instrumented.start(hooks)
        try:
            yield
        finally:
            instrumented.stop()
            self._tracked.clear()

    # Called by the wrapper

    def enter(self, args: list[object]) -> None:
        """Called as the graph is called: tracks the graph inputs that the launch reads."""
        if self.done or self.recorded.values:
            self.done = True
            return
        plan, launch = self.plan, self.plan.launch
        arguments = dict(zip(plan.watch.graph.inputs, args, strict=True))
        self._ints = {name: value for name, value in arguments.items() if not isinstance(value, Tensor)}
        for node, source in plan.sources.items():
            if source.written == -1 and not source.takes and source.name in arguments:
                self.recorded.node_values[node] = _copied(arguments[source.name])
        for name in launch.takes:
            if name in arguments and plan.writer(name, plan.number) == -1:
                self._track(name, arguments[name], -1, (plan.number,))

    def before(self, number: int, *values: object) -> None:
        """Called before each launch, with its arguments."""
        if self.done:
            return
        launch = self.plan.wrapper.launches[number]
        self._arguments = values
        for tracked in list(self._tracked.values()):
            if self.closely or number in tracked.readers:
                self._compare(tracked, None, number)
            if number == tracked.readers[-1]:
                self._tracked.pop(tracked.name, None)
        if number == self.plan.number:
            self._record(dict(zip(launch.names, values, strict=True)))

    def after(self, number: int, *values: object) -> None:
        """Called after each launch, and after a member of its result is named, with the buffers that it wrote."""
        if self.done:
            return
        point, plan = self.plan.wrapper.points[number], self.plan
        named = dict(zip(point.names, values, strict=True))
        self._regions |= {
            name: MemoryRegion.of(value)
            for name, value in named.items()
            if isinstance(value, Tensor) and strided(value)
        }
        for tracked in list(self._tracked.values()):
            if point.launch != tracked.writer and tracked.name not in named:
                shares = overlap(tracked.region, (*self._arguments, *values))
                if self.closely or shares:
                    self._compare(tracked, point.launch, point.launch + 1, shares=shares)
        self._sources(point, number, named)
        if point.launch == plan.number:
            self._record_written(number, named)
        self._last = point.launch

    def leave(self, *values: object) -> None:
        """Called with what the graph is about to return."""
        for tracked in list(self._tracked.values()):
            if RETURN in tracked.readers:
                self._compare(tracked, None, RETURN)
        self._tracked.clear()
        self.done = True

    def _sources(self, point: Point, number: int, named: Mapping[str, object]) -> None:
        """Track or copy what the recorded launch reads, as it is written."""
        plan, launch = self.plan, self.plan.launch
        if point.launch >= plan.number:
            return
        for name, value in named.items():
            if plan.wrapper.writes[name][-1] != number or plan.writer(name, plan.number) != point.launch:
                continue
            if name in launch.takes:
                self._track(name, value, point.launch, (plan.number,))
            for node, source in plan.sources.items():
                if source.name == name and not source.takes:
                    self.recorded.node_values[node] = _copied(value)

    def _record(self, values: dict[str, object]) -> None:
        plan, recorded = self.plan, self.recorded
        present = dict(zip(plan.launch.takes, plan.launch.present, strict=True))
        try:
            recorded.values = {name: recorded.memory.add(value) for name, value in (values | plan.constants).items()}
            for node, source in plan.sources.items():
                if source.takes:
                    name = present.get(source.name, source.name)
                    recorded.node_values[node], whole = self._source(source.name, name, values)
                    if whole:
                        recorded.read[node] = name
        except RuntimeError as error:  # usually out of memory: the program itself continues
            recorded.problem = f"its inputs could not be copied: {first_line(error)}"
            self.done = True

    def _source(self, name: str, present: str, values: Mapping[str, object]) -> tuple[object, bool]:
        """The value of a buffer whose memory may have another name now, and whether it has the same layout."""
        value = values.get(present, self._ints.get(name))
        region = self._regions.get(name)
        if not isinstance(value, Tensor) or region is None or MemoryRegion.of(value) == region:
            return _copied(value), present in values
        return _copied(region.read_through(value)), False

    def _record_written(self, number: int, named: Mapping[str, object]) -> None:
        """Record what the launch wrote, and track it until it is read."""
        plan = self.plan
        self.recorded.ran = True
        for buffer in plan.writes:
            value = named.get(buffer.name)
            if not isinstance(value, Tensor) or plan.wrapper.writes[buffer.name][-1] != number:
                continue
            self.recorded.written[buffer.name] = value.clone()
            self.recorded.regions[buffer.name] = MemoryRegion.of(value)
            whole = named.get(buffer.whole)
            if isinstance(whole, Tensor):
                self.recorded.regions[buffer.whole] = MemoryRegion.of(whole)
            readers = plan.readers(buffer.name)
            if buffer.name in plan.wrapper.returned:
                readers = (*readers, RETURN)
            if readers:
                self._track(buffer.name, value, plan.number, readers)

    # Tracked buffers

    def _track(self, name: str, value: object, writer: int, readers: tuple[int, ...]) -> None:
        if isinstance(value, Tensor) and strided(value):
            copy = value.detach().clone()
            self._tracked[name] = _Tracked(name, value, copy, writer, readers, MemoryRegion.of(value))

    def _compare(self, tracked: _Tracked, by: int | None, until: int, *, shares: bool = False) -> None:
        """Report a tracked buffer that has changed, once."""
        if same_bits(tracked.value, tracked.copy):
            return
        del self._tracked[tracked.name]
        readers = [reader for reader in tracked.readers if reader == RETURN or reader >= until]
        if readers:
            after = self._last if by is None else by
            self.recorded.overwritten.append(
                Overwritten(tracked.name, tracked.writer, readers[0], by, after, until, shares)
            )


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value
