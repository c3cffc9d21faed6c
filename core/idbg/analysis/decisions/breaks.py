"""List the graph breaks of a run by line, with what lies on either side, what they cost, and what to do about them.

Torch has 560 titles of breaks: those that programs meet have words of ours here; others keep torch's own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from idbg.analysis.decisions.break_report import own, whose
from idbg.analysis.decisions.frames import children, resumed
from idbg.analysis.decisions.suggestions import Suggestion
from idbg.schema.decisions.dynamo import BreakAgain, BreakWay, FrameResult, GraphBreak
from idbg.schema.graphs import Graph
from idbg.schema.runs import Run

_BUILTIN = re.compile(r"builtin operator `(.+?)`")
_FUNCTION = re.compile(r"the (?:builtin|function|Python builtin)?\s*`(.+?)\.?`")
_EXPLICIT = "Call to `torch._dynamo.graph_break()`"
_RNN = "Attempted to wrap RNN, GRU, or LSTM"
_RANDOM = "Branching on a number that Python's random gives"
_DISABLED = "a function that the program keeps from being compiled is called"
_WORDS: dict[str, str] = {
    "Data-dependent branching": "Python branches on the value of a tensor",
    _RANDOM: "Python branches on a number that its module random draws",
    "Data dependent operator": "an op gives Python a tensor's value",
    "Data-dependent branching with non-constant __bool__": "Python branches on what an object's __bool__ computes",
    "Data-dependent assertion failed (cannot compile partial graph)": "an assert asks for a tensor's value",
    "Dynamic shape operator": "the shape of an op's result depends on values",
    "Dynamic shape operator (no meta kernel)": "the shape of an op's result depends on values",
    "Dynamic slicing with Tensor arguments": "a slice's bounds are tensors",
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": ".item() takes a tensor's value to Python",
    "Tensor.tolist() with non-integer tensor": ".tolist() takes a tensor's values to Python",
    "Tensor.numpy() with trace_numpy=False": ".numpy() leaves torch",
    "Unsupported Tensor.backward() call": ".backward() is called inside of what is compiled",
    "Attempt to trace generator": "a generator function is compiled: what it yields cannot be a graph",
    _RNN: "torch does not trace RNN, GRU and LSTM",
    "Attempted to wrap sparse Tensor": "torch does not trace sparse tensors",
    _EXPLICIT: "the program asks for a break here",
    "Call to `torch.compiler.disable()`": "the program keeps this function from being compiled",
    "Skip calling `torch.compiler.disable()`d function": _DISABLED,
    "Skip inlining `torch.compiler.disable()`d function": _DISABLED,
    "Graph break under GenericContextWrappingVariable": "a break lies within a context manager of the program's own",
    "Unsupported context manager": "a context manager cannot be traced",
    "graph break in loop": "a break lies within a loop: the whole function runs in eager",
    "Dynamo recompile limit exceeded": "it was compiled too often",
    "Attempted to call function marked as skipped": "a function that torch never traces is called",
    "Attempted to inline function marked as skipped": "a function that torch never traces is called",
    "logging.Logger method not supported for non-export cases": "it logs",
    "Observed exception": "the traced code raises an exception",
    "copy.deepcopy()": "copy.deepcopy() is called",
    "Unsupported function call": "something is called that torch cannot trace",
    "Unsupported method call": "a method is called that torch cannot trace",
    "Backend compiler exception": "the backend refused the graph",
    "Fake tensor propagation exception": "an op does not run on tensors without values",
    "Operator does not support running with fake tensors": "an op does not run on tensors without values",
    "Inplace op on input tensor": "an input is changed in place in a way that torch cannot trace",
    "Import failure": "an import inside of what is compiled fails",
}
_SET = "torch._dynamo.config."
_TRIES: dict[str, tuple[str, str]] = {
    "Unsupported Tensor.item() call with capture_scalar_outputs=False": (
        "let graphs hold numbers that come from tensors",
        "capture_scalar_outputs",
    ),
    "Dynamic shape operator": ("let graphs hold shapes that depend on values", "capture_dynamic_output_shape_ops"),
    _RNN: ("let torch try to trace it", "allow_rnn"),
}
_FIXES: dict[str, tuple[str, str]] = {
    "Data-dependent branching": (
        "let a graph choose: by element, or between whole branches",
        "torch.where(condition, a, b)  # or torch.cond(condition, f, g, (x,))",
    ),
    _RANDOM: ("draw it with torch, and let a graph choose", "torch.where(torch.rand(()) < p, a, b)"),
    "Attempt to trace generator": ("compile the function that calls the generator", ""),
    "Unsupported Tensor.backward() call": ("call .backward() outside of what is compiled", ""),
}
_REORDER = f"{_SET}reorderable_logging_functions.add(print)"
_PRINTS = Suggestion("have it done after the graph", _REORDER)
_PRINTS_TEXT = Suggestion(
    "print one f-string, and have it done after the graph: what waits is called with tensors, constants and f-strings, "
    "and without keywords",
    _REORDER,
)
_NO_REORDER = "attempted to reorder a debugging function that can't actually be reordered"
_ARGUMENT = re.compile(r"\.(\w+)'>")
_CAN_WAIT = frozenset({"TensorVariable", "ConstantVariable", "StringFormatVariable"})


def words(graph_break: GraphBreak) -> str:
    """What stopped the graph: ours where it is a break that we know, else torch's."""
    if graph_break.way == "limit":
        return graph_break.reason.partition(";")[0]
    if graph_break.kind == "Failed to trace builtin operator" and (found := _BUILTIN.search(graph_break.explanation)):
        return f"{found[1]}() cannot be in a graph"
    if graph_break.kind == _EXPLICIT and whose(graph_break.file) == "torch":
        return "torch asks for a break in code of its own"
    known = _WORDS.get(_title(graph_break))
    if known is not None and graph_break.kind.endswith("marked as skipped"):
        name = _FUNCTION.search(graph_break.explanation)
        return f"{known}: {name[1]}" if name else known
    return known or graph_break.kind or graph_break.reason.partition("\n")[0]


def _title(graph_break: GraphBreak) -> str:
    """Torch's title, or ours of a part of what has one; an older torch's where a newer one only explains it."""
    if graph_break.kind == "Data-dependent branching" and "random_value_" in graph_break.explanation:
        return _RANDOM
    return _RNN if "allow_rnn=True" in graph_break.explanation else graph_break.kind


def suggestions(graph_break: GraphBreak) -> Iterator[Suggestion]:
    """What can be done about it; none where torch's hints say all that is known."""
    if graph_break.kind == "Failed to trace builtin operator" and "`print`" in graph_break.explanation:
        plain = _CAN_WAIT.issuperset(_ARGUMENT.findall(graph_break.context)) and graph_break.context.endswith("False")
        yield _PRINTS if plain else _PRINTS_TEXT
    if graph_break.kind == _NO_REORDER or "can only reorder functions" in graph_break.reason:
        yield _PRINTS_TEXT
    if (tried := _TRIES.get(_title(graph_break))) is not None:
        yield Suggestion(tried[0], f"{_SET}{tried[1]} = True", settings={f"dynamo.{tried[1]}": True})
    if (fix := _FIXES.get(_title(graph_break))) is not None:
        yield Suggestion(*fix)


WAYS: dict[str, str] = {
    "call": "Python makes this call, and the rest is another graph",
    "branch": "Python chooses, and each arm is another graph",
    "rest": "the rest of the function runs in eager",
    "frame": "the whole function runs in eager",
    "frame or error": "the whole function runs in eager, or, with fullgraph=True, this ended the program: the trace of "
    "a torch before 2.11 does not say which",
    "limit": "calls that no compiled version fits run in eager",
    "": "",
}
"""How the function goes on."""


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
    for again in run.decided.every(BreakAgain):
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
        self._results = run.decided.last(FrameResult)
        self._kernels: dict[str, int] = {}
        for (frame, _), code in run.codes.items():
            self._kernels[frame] = self._kernels.get(frame, 0) + len(code.kernels)

    def all(self, frames: Iterable[str]) -> tuple[Sides, ...]:
        return tuple(self._sides(frame) for frame in frames)

    def _sides(self, before: str) -> Sides:
        run, below = self._run, self._below.get(before, [])
        after = tuple(name for name in below if self._goes_on(before, name))
        own_result = self._results.get(before)
        is_there = own_result is None or own_result.end == "compiled"
        tensors, size, unsized = _given_back(run.graph(before, "dynamo") if is_there else None)
        results = [self._results[name] for name in below if name in self._results]
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
