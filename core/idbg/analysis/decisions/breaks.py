"""List the graph breaks of a run by line, with what lies on either side, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from idbg.analysis.decisions.break_words import words
from idbg.analysis.decisions.frames import children, resumed
from idbg.analysis.decisions.stacks import own
from idbg.schema.decisions.dynamo import BreakWay, GraphBreak
from idbg.schema.graphs import Graph
from idbg.schema.runs import Run


@dataclass(frozen=True)
class Sides:
    """What one break split. `before` is the frame that broke, `after` those in which its function goes on, `called`
    those that had to be compiled on their own between. `tensors` and `size` (bytes) are what the graph before gives
    back and so crosses memory, `unsized` those of them whose size is not known. `seconds`: the compiles of the frames
    that are there for the break, and the attempts that it cost; None where torch reported none.
    """

    before: str
    after: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    tensors: int = 0
    size: int = 0
    unsized: int = 0
    kernels_before: int = 0
    kernels_after: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class BreakPlace:
    """Every break of one line for one reason. `first` is the one with all details; `frames` has one for each time
    that it was met, "" where it was in no frame, and `ways` how the function went on. `file` and `line` are the user's.
    """

    first: GraphBreak
    frames: tuple[str, ...]
    ways: tuple[BreakWay, ...]
    sides: tuple[Sides, ...]
    file: str
    line: int

    @property
    def count(self) -> int:
        """How often it was met."""
        return len(self.frames)

    @property
    def words(self) -> str:
        """What stopped the graph, in plain words."""
        return words(self.first)

    @property
    def page(self) -> str:
        """What torch calls its page of such breaks ("GB0059"); "" where it has none."""
        name = self.first.page.rpartition("/")[2].partition(".")[0]
        return name.upper()

    @cached_property
    def seconds(self) -> float | None:
        """What all of them cost in compiling; None where torch reported none."""
        known = [side.seconds for side in self.sides if side.seconds is not None]
        return sum(known) if known else None

    @cached_property
    def worst(self) -> Sides | None:
        """Of those whose graphs it split, the one that costs most; None where it split none."""
        split = [side for side in self.sides if side.after or side.called or side.tensors]
        return max(split, key=lambda side: (side.seconds or 0.0, side.size), default=None)


def places(run: Run) -> list[BreakPlace]:
    """The breaks by line and reason: what costs most first, then what happens most often."""
    met: dict[tuple[str, int, str], list[tuple[str, BreakWay]]] = {}
    firsts: dict[tuple[str, int, str], GraphBreak] = {}
    keys = [(each.file, each.line, each.reason) for each in run.breaks]
    for key, each in zip(keys, run.breaks, strict=True):
        firsts.setdefault(key, each)
        met.setdefault(key, []).append((each.frame, each.way))
    for again in run.decided.breaks_again:
        if again.first < len(keys):
            met[keys[again.first]].append((again.frame, again.way))
    splitting = _Splitting(run)
    found = [_place(first, met[key], splitting) for key, first in firsts.items()]
    return sorted(found, key=lambda place: (-(place.seconds or 0.0), -place.count))


def _place(first: GraphBreak, met: list[tuple[str, BreakWay]], splitting: "_Splitting") -> BreakPlace:
    line = own(first.stack)
    file, number = (line.file, line.line) if line is not None else (first.file, first.line)
    sides = splitting.all(dict.fromkeys(frame for frame, _ in met if frame))
    frames, ways = zip(*met, strict=True)
    return BreakPlace(first, frames, ways, sides, file, number)


class _Splitting:
    """What breaks split in a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._below = children(run)
        self._kernels: dict[str, int] = {}
        for (frame, _), code in run.codes.items():
            self._kernels[frame] = self._kernels.get(frame, 0) + len(code.kernels)

    def all(self, frames: Iterable[str]) -> tuple[Sides, ...]:
        return tuple(self._sides(frame) for frame in frames)

    def _sides(self, before: str) -> Sides:
        run, below = self._run, self._below.get(before, [])
        after = tuple(name for name in below if self._goes_on(before, name))
        own_result = run.decided.results.get(before)
        is_there = own_result is None or own_result.end == "compiled"
        tensors, size, unsized = _given_back(run.graph(before, "dynamo") if is_there else None)
        results = [run.decided.results[name] for name in below if name in run.decided.results]
        seconds = [result.seconds for result in results if result.seconds is not None]
        if own_result is not None and own_result.lost is not None:
            seconds.append(own_result.lost)
        return Sides(
            before,
            after,
            tuple(name for name in below if name not in after),
            tensors,
            size,
            unsized,
            self._kernels.get(before, 0),
            sum(self._kernels.get(name, 0) for name in after),
            sum(seconds) if seconds else None,
        )

    def _goes_on(self, before: str, name: str) -> bool:
        """Whether this frame is what follows of the function that `before` is, or is a part of."""
        frames = self._run.frames
        rest = resumed(frames[name].function)
        if rest is None or before not in frames:
            return False
        part = resumed(frames[before].function)
        return rest[0] == (part[0] if part else frames[before].function) and frames[name].file == frames[before].file


def _given_back(graph: Graph | None) -> tuple[int, int, int]:
    """Tensors that a graph gives back, their bytes, and how many have no known size."""
    if graph is None:
        return 0, 0, 0
    names = {name for node in graph.nodes if node.op == "output" for name in node.inputs}
    tensors = [tensor for name in names if name in graph.by_name for tensor in graph.by_name[name].tensors]
    sizes = [tensor.nbytes for tensor in tensors]
    return len(tensors), sum(size for size in sizes if size is not None), sizes.count(None)
