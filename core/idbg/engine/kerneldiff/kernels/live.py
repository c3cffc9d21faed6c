"""Find the launches that write over memory which is still needed: the wrapper may give it away too early, and an op may
write to an argument without declaring it.

The content of an input or a buffer is compared by a checksum after each launch that could have changed it, until the
last launch that reads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor

from idbg.engine.compat import comparing
from idbg.engine.instrument.wrapper_lines import Wrapper
from idbg.engine.kerneldiff.kernels.inputs import graph_writes, root
from idbg.engine.kerneldiff.kernels.returned import Checksum, checksum, is_plain

_PROGRAM = -1  # the program itself is the next reader


@dataclass(frozen=True)
class Overwrite:
    """A launch has changed the input or buffer `name`. `by`: its buffer that has the same memory, "" if it should only
    read it; `reader`: the next launch that reads `name`, None if only the program's own tensor is changed.
    """

    name: str
    value: Tensor
    by: str
    reader: int | None


class LiveMemory:
    """The inputs and buffers of one call of a graph that later launches read."""

    def __init__(self, graph: comparing.InductorGraph, wrapper: Wrapper) -> None:
        self.wrapper = wrapper
        self._inputs = frozenset(graph.inputs) - graph_writes(graph)
        self._outlives = graph.part != "backward"  # which may reuse saved values, once nothing reads them any more
        self._readers: dict[str, list[int]] = {}
        for at, launch in enumerate(wrapper.launches):
            for name in dict.fromkeys(map(self._owner, launch.takes)):
                self._readers.setdefault(name, []).append(at)
        self._suspects = self._all_suspects(graph)
        self._watched = {name for names in self._suspects.values() for name in names}
        self._held: dict[str, tuple[Tensor, Checksum]] = {}

    def hold(self, values: Mapping[str, object], point: int = -1) -> None:
        """Remember what these hold after this point of the wrapper; before all of them, what the inputs do."""
        for name in self._watched.intersection(values):
            value = values[name]
            if self._last_point(name) == point and is_plain(value):
                assert isinstance(value, Tensor)
                self._held[name] = (value, checksum(value))

    def overwritten(self, launch: int) -> Iterator[Overwrite]:
        """What this launch has wrongly changed."""
        for name, by in self._suspects.get(launch, {}).items():
            if name not in self._held:
                continue
            value, before = self._held[name]
            if (now := checksum(value)) != before:
                self._held[name] = (value, now)
                yield Overwrite(name, value, by, self._next_reader(name, launch))
        for name in [name for name in self._held if self._end(name) <= launch]:
            del self._held[name]

    def _all_suspects(self, graph: comparing.InductorGraph) -> dict[int, dict[str, str]]:
        """For each launch, the names that it could wrongly change, each with the buffer through which ("": none)."""
        shared: dict[str, list[str]] = {}
        for name in dict.fromkeys((*graph.inputs, *self.wrapper.writes)):
            shared.setdefault(root(name, self.wrapper), []).append(name)
        found: dict[int, dict[str, str]] = {}
        for name in (*self._inputs, *self.wrapper.writes.keys() - set(graph.inputs)):
            written, last_reader = self._written(name), max(self._readers.get(name, ()), default=_PROGRAM)
            for at in (at for at in self._readers.get(name, ()) if written < at < last_reader):
                found.setdefault(at, {})[name] = ""
            for other in shared[root(name, self.wrapper)]:
                for at in {self.wrapper.points[point].launch for point in self.wrapper.writes.get(other, ())}:
                    if other != name and written < at < self._end(name):
                        found.setdefault(at, {})[name] = other
        return found

    def _owner(self, name: str) -> str:
        """The input or written buffer whose value the name stands for."""
        while name not in self.wrapper.writes and name in self.wrapper.bases:
            name = self.wrapper.bases[name]
        return name

    def _last_point(self, name: str) -> int:
        return -1 if name in self._inputs else self.wrapper.writes[name][-1]

    def _written(self, name: str) -> int:
        """The launch that gives it its value; -1 for an input."""
        point = self._last_point(name)
        return self.wrapper.points[point].launch if point >= 0 else -1

    def _end(self, name: str) -> int:
        """The launch from which on its memory is free."""
        if name in self._inputs and self._outlives:
            return len(self.wrapper.launches)
        return max(self._readers.get(name, ()), default=self._written(name))

    def _next_reader(self, name: str, launch: int) -> int | None:
        return next((at for at in self._readers.get(name, ()) if at > launch), None)
