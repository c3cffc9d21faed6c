"""What is a launch really called with in a run, and does anything else write to what it reads or writes?

The wrapper's `call` is given the same statements with calls of ours between them (instrument/): before the chosen
launch all that it is called with is copied, and each buffer that it reads or writes is held against what its own launch
left in it for as long as something reads it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from idbg.engine.instrument.wrapper_code import Instrumented
from idbg.engine.instrument.wrapper_lines import AFTER, BEFORE, ENTER, LEAVE, Point
from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryCopies, MemoryRegion, overlap, same, strided
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

RETURN = -1  # the reader that is the graph's return


@dataclass(frozen=True)
class Overwritten:
    """A buffer that was no longer what its launch left there as another launch read it (RETURN: the graph returned it).

    `by` is the launch after which that was seen first; None where it was seen between two: `after`, and `until`, which
    was about to run. `shares`: the launch that wrote was given memory of the buffer.
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
    """What the chosen launch was called with: `values` by the names in its call, copied as it was about to run (of a
    tensor the place, at which `clones` has it); `sources`, the values of the nodes that its nodes begin with, and in
    `read` the name in the call that has such a value; `left`, by name, of each buffer that it writes, with the `places`
    of these. `ran` says that all of it is there.
    """

    clones: MemoryCopies = field(default_factory=MemoryCopies)
    values: dict[str, object] = field(default_factory=dict)
    sources: dict[str, object] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    left: dict[str, Tensor] = field(default_factory=dict)
    places: dict[str, MemoryRegion] = field(default_factory=dict)
    overwritten: list[Overwritten] = field(default_factory=list)
    ran: bool = False
    problem: str = ""


@dataclass
class _Tracked:
    """A buffer while it must stay as it is: until the last of these `readers`."""

    name: str
    value: Tensor
    copy: Tensor
    writer: int
    readers: tuple[int, ...]
    place: MemoryRegion


class LaunchRecorder:
    """Takes one launch of a graph's wrapper in its next call. With `closely` each tracked buffer is looked at after
    every launch, else where a launch was given memory of it and where it is read.
    """

    def __init__(self, plan: LaunchPlan, *, closely: bool = False) -> None:
        self.plan = plan
        self.closely = closely
        self.taken = RecordedLaunch()
        self.done = False
        self._places: dict[str, MemoryRegion] = {}
        self._tracked: dict[str, _Tracked] = {}
        self._ints: dict[str, object] = {}
        self._last = -1  # the launch that ran last
        self._arguments: Sequence[object] = ()

    @contextmanager
    def listening(self) -> "Iterator[None]":
        """While it lasts, the wrapper calls us."""
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
        """The graph is called: what the chosen launch reads of its arguments is looked after from here."""
        if self.done or self.taken.values:
            self.done = True
            return
        plan, launch = self.plan, self.plan.launch
        given = dict(zip(plan.watch.graph.inputs, args, strict=True))
        self._ints = {name: value for name, value in given.items() if not isinstance(value, Tensor)}
        for node, source in plan.sources.items():
            if source.written == -1 and not source.takes and source.name in given:
                self.taken.sources[node] = _copied(given[source.name])
        for name in launch.takes:
            if name in given and plan.writer(name, plan.number) == -1:
                self._track(name, given[name], -1, (plan.number,))

    def before(self, number: int, *values: object) -> None:
        """A launch is about to run, and is called with these."""
        if self.done:
            return
        launch = self.plan.wrapper.launches[number]
        self._arguments = values
        for tracked in list(self._tracked.values()):
            if self.closely or number in tracked.readers:
                self._look(tracked, None, number)
            if number == tracked.readers[-1]:
                self._tracked.pop(tracked.name, None)
        if number == self.plan.number:
            self._take(dict(zip(launch.names, values, strict=True)))

    def after(self, number: int, *values: object) -> None:
        """A launch has run (or a member of its result was named): its buffers hold these."""
        if self.done:
            return
        point, plan = self.plan.wrapper.points[number], self.plan
        named = dict(zip(point.names, values, strict=True))
        self._places |= {
            name: MemoryRegion.of(value)
            for name, value in named.items()
            if isinstance(value, Tensor) and strided(value)
        }
        for tracked in list(self._tracked.values()):
            if point.launch != tracked.writer and tracked.name not in named:
                shares = overlap(tracked.place, (*self._arguments, *values))
                if self.closely or shares:
                    self._look(tracked, point.launch, point.launch + 1, shares=shares)
        self._sources(point, number, named)
        if point.launch == plan.number:
            self._left(number, named)
        self._last = point.launch

    def leave(self, *values: object) -> None:
        """The graph is about to return these."""
        for tracked in list(self._tracked.values()):
            if RETURN in tracked.readers:
                self._look(tracked, None, RETURN)
        self._tracked.clear()
        self.done = True

    def _sources(self, point: Point, number: int, named: Mapping[str, object]) -> None:
        """What the chosen launch reads has just been written."""
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
                    self.taken.sources[node] = _copied(value)

    def _take(self, values: dict[str, object]) -> None:
        plan, taken = self.plan, self.taken
        present = dict(zip(plan.launch.takes, plan.launch.present, strict=True))
        try:
            taken.values = {name: taken.clones.take(value) for name, value in (values | plan.constants).items()}
            for node, source in plan.sources.items():
                if source.takes:
                    name = present.get(source.name, source.name)
                    taken.sources[node], whole = self._source(source.name, name, values)
                    if whole:
                        taken.read[node] = name
        except RuntimeError as error:  # out of memory, as a rule: the program itself goes on
            taken.problem = f"its inputs could not be copied: {str(error).splitlines()[0]}"
            self.done = True

    def _source(self, name: str, present: str, values: Mapping[str, object]) -> tuple[object, bool]:
        """The value of a buffer whose memory may have another name by now, and whether it has the same form."""
        value = values.get(present, self._ints.get(name))
        place = self._places.get(name)
        if not isinstance(value, Tensor) or place is None or MemoryRegion.of(value) == place:
            return _copied(value), present in values
        return _copied(place.seen_from(value)), False

    def _left(self, number: int, named: Mapping[str, object]) -> None:
        """What the chosen launch left in its buffers; until they have been read they must stay so."""
        plan = self.plan
        self.taken.ran = True
        for held in plan.writes:
            value = named.get(held.name)
            if not isinstance(value, Tensor) or plan.wrapper.writes[held.name][-1] != number:
                continue
            self.taken.left[held.name] = value.clone()
            self.taken.places[held.name] = MemoryRegion.of(value)
            whole = named.get(held.whole)
            if isinstance(whole, Tensor):
                self.taken.places[held.whole] = MemoryRegion.of(whole)
            readers = plan.readers(held.name)
            if held.name in plan.wrapper.returned:
                readers = (*readers, RETURN)
            if readers:
                self._track(held.name, value, plan.number, readers)

    # What is looked after

    def _track(self, name: str, value: object, writer: int, readers: tuple[int, ...]) -> None:
        if isinstance(value, Tensor) and strided(value):
            copy = value.detach().clone()
            self._tracked[name] = _Tracked(name, value, copy, writer, readers, MemoryRegion.of(value))

    def _look(self, tracked: _Tracked, by: int | None, until: int, *, shares: bool = False) -> None:
        """Tell of a buffer that has changed, once."""
        if same(tracked.value, tracked.copy):
            return
        del self._tracked[tracked.name]
        left = [reader for reader in tracked.readers if reader == RETURN or reader >= until]
        if left:
            after = self._last if by is None else by
            self.taken.overwritten.append(Overwritten(tracked.name, tracked.writer, left[0], by, after, until, shares))


def _copied(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value
