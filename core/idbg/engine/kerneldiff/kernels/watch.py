"""What do the launches of one compiled graph write, and is it what their nodes stand for?

For the run, the wrapper's function `call` is given other bytecode: the same statements, and after each launch a call of
ours with the buffers that it wrote. They are compared at once, before a later kernel can reuse their memory, with the
values that the post-grad graph's own nodes have for the inputs that `call` was given.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch
from msgspec.structs import replace
from torch import Tensor
from torch.fx import Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, fx
from idbg.engine.instrument.wrapper_code import Instrumented, output_code
from idbg.engine.instrument.wrapper_lines import AFTER, ENTER, Launch, Wrapper, read_wrapper
from idbg.engine.kerneldiff.kernels.references import Both, References, Unknown
from idbg.engine.kerneldiff.kernels.rounding import Rounding
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_buffer
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.engine.kerneldiff.tensors.compare import compare_tensors
from idbg.schema.diff import KernelError, TensorDiff
from idbg.schema.graphs import GraphId

_STEPS = re.compile(r"(sign|floor|ceil|round|trunc|frac|fmod|remainder|floor_divide|argmax|argmin|bucketize)(\..*)?")


@dataclass(frozen=True)
class Held:
    """After the launch, the buffer `name` holds `node`; `changes` are the nodes that write to it in place. With
    `whole`, the name of another buffer, it is a part of that one, which holds the node.
    """

    name: str
    node: str
    changes: tuple[str, ...] = ()
    whole: str = ""


@dataclass(frozen=True)
class Output:
    """One buffer as its launch left it. `diff` tells all of it where it is bad, else it is None."""

    held: Held
    judged: BufferVerdict
    diff: TensorDiff | None


@dataclass
class Seen:
    """What was seen of one launch."""

    outputs: list[Output] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    input_error: Size = field(default_factory=Size)
    natural: Size = field(default_factory=Size)  # the inputs' errors, of what cancels over the size of its terms
    unobserved: list[str] = field(default_factory=list)  # inputs of which nothing is known
    ran: bool = False


class Watch:
    """One graph's wrapper and what its launches wrote in its first call."""

    def __init__(self, graph: comparing.InductorGraph, k: float, count: Callable[[], int]) -> None:
        """`count` gives the place in the run of a graph that is called now, from 1."""
        self.graph = graph
        self.k = k
        self.count = count
        self.called = 0  # 1 for the first graph that was called, and so on; 0 before
        self.code = output_code(graph)
        self.frame = self.code.frame
        self.nodes: dict[str, Node] = {node.name: node for node in graph.gm.graph.nodes}
        buffers = {buffer.name: buffer for buffer in graph.buffers}
        self.changes = _changes(graph, self.nodes)
        self.wrapper: Wrapper = read_wrapper(self.code, {*graph.inputs, *buffers}, self.changes)
        self.instrumented = Instrumented(graph.module, self.wrapper.instrumented(), ENTER, AFTER)
        self.held = self._held(buffers)
        self.seen = [Seen() for _ in self.wrapper.launches]
        self.sizes: dict[str, Size] = {}  # the error of each buffer, over its own size
        self.natural: dict[str, Size] = {}  # and over the size of the terms that it is the sum of
        self.unobserved: set[str] = set()
        self.references: References | None = None
        self.rounding = Rounding({})
        self.problem = ""
        self.given: tuple[object, ...] | None = None  # what its first call was given, as it was then

    def start(self) -> None:
        """Have the wrapper call `enter` and `after`."""
        self.instrumented.start({ENTER: self.enter, AFTER: self.after})

    def stop(self) -> None:
        """Give the wrapper its own code back, and the reference values their memory."""
        self.instrumented.stop()
        self.references = None

    def _held(self, buffers: Mapping[str, comparing.Buffer]) -> dict[int, list[Held]]:
        """Point -> the buffers that hold a node's value from there on."""
        held: dict[int, list[Held]] = {}
        order = {node: place for place, node in enumerate(self.nodes)}
        for name, points in self.wrapper.writes.items():
            changes = tuple(sorted(self.changes.get(name, ()), key=order.__getitem__))
            node = buffers[name].node if name in buffers else (changes or ("",))[-1]
            whole = self.wrapper.bases.get(name, "")
            if node in self.nodes:
                if name not in buffers and not _gives_tensor(self.nodes[node]):
                    node = list(self.nodes)[self.graph.inputs.index(name)]
                held.setdefault(points[-1], []).append(Held(name, node, changes))
            elif whole in buffers and buffers[whole].node in self.nodes and whole in self._names_at(points[-1]):
                held.setdefault(points[-1], []).append(Held(name, buffers[whole].node, whole=whole))
        return held

    def _names_at(self, point: int) -> tuple[str, ...]:
        return self.wrapper.points[point].names

    # Called by the wrapper

    def enter(self, args: list[object]) -> None:
        """Called first of all, with what `call` was given: copies it, in the first call alone."""
        self.references = None
        if self.called:
            return
        self.called = self.count()
        wanted = Counter(node for held in self.held.values() for each in held for node in (each.node, *each.changes))
        try:
            with torch.no_grad():
                self.references = References(self.graph.gm, args, wanted)
            self.given = tuple(self.references.inputs)
            self.rounding = Rounding(self.references.rms)
        except (RuntimeError, ValueError) as error:  # out of memory, or arguments that are not the graph's
            self.problem = f"the inputs could not be copied: {str(error).splitlines()[0]}"

    def after(self, number: int, *values: object) -> None:
        """Called at the point of this number, with the tensors that its names hold: compares those that hold a node."""
        point = self.wrapper.points[number]
        launch, seen = self.wrapper.launches[point.launch], self.seen[point.launch]
        if self.references is None:
            return
        if not seen.ran:
            self._inputs(launch, seen)
        at = dict(zip(point.names, values, strict=True))
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            for held in self.held.get(number, ()):
                self._output(held, at, launch, seen, self.references)
        self._pass_on(point.names, seen)

    def _inputs(self, launch: Launch, seen: Seen) -> None:
        seen.ran = True
        sizes = [(name, self._size(name)) for name in launch.takes]
        seen.input_error = _worst([size or Size() for _, size in sizes])
        seen.natural = _worst([self.natural.get(self._known(name), size or Size()) for name, size in sizes])
        seen.unobserved = [name for name, size in sizes if size is None or name in self.unobserved]

    def _size(self, name: str) -> Size | None:
        """The buffer's error, None if it is not known; where it is what another one came with, that is taken."""
        return self.sizes.get(self._known(name), Size() if self._known(name) in self.graph.inputs else None)

    def _known(self, name: str) -> str:
        while name not in self.sizes and name in self.wrapper.bases:
            name = self.wrapper.bases[name]
        return name

    def _output(self, held: Held, at: Mapping[str, object], launch: Launch, seen: Seen, references: References) -> None:
        node, value = self.nodes[held.node], at[held.name]
        if not isinstance(value, Tensor):
            return
        if comparing.is_random(node):
            references.take(node.name, value)
            self.sizes[held.name] = Size()
            seen.reasons.append("it draws random numbers, which are taken as they are")
            return
        try:
            for change in held.changes:
                references.value(change)
            reference = references.value(node.name)
            if held.whole:
                reference = _part(reference, cast("Tensor", at[held.whole]), value)
            reference = _like(reference, value)
            rounding = self.rounding.error(node)
            steps = self._steps(launch)
            result = judge_buffer(value, reference, [seen.natural], k=self.k, steps=steps, rounding=rounding)
            diff = _diff(reference, value, node.name) if result.excess > 1 else None
            seen.outputs.append(Output(held, result, diff))
            self._note(held, node, result)
        except Unknown as unknown:
            seen.reasons.append(str(unknown))
        except RuntimeError as error:  # out of memory, as a rule: the program itself goes on
            seen.reasons.append(f"{held.name} could not be compared: {str(error).splitlines()[0]}")
        for name in (held.node, *held.changes):
            references.done(name)

    def _note(self, held: Held, node: Node, result: BufferVerdict) -> None:
        """What later kernels come with that take this buffer."""
        self.sizes[held.name] = result.error
        by_terms = (self.rounding.natural(node, each) for each in result.error)
        self.natural[held.name] = result.error if result.excess > 1 else Size(*by_terms)
        if not held.whole:
            self.rounding.measured[node] = result.error.rmse

    def _pass_on(self, names: tuple[str, ...], seen: Seen) -> None:
        """A buffer that could not be compared is taken to be as wrong as what it came with."""
        known = _worst([seen.input_error, *(output.judged.error for output in seen.outputs)])
        for name in names:
            if name not in self.sizes:
                self.sizes[name] = known
                self.unobserved.add(name)

    def _steps(self, launch: Launch) -> bool:
        return any(_makes_steps(self.nodes[name]) for name in launch.nodes if name in self.nodes)

    # The result

    def errors(self) -> Iterator[KernelError]:
        """Every launch of the wrapper, in the order of its lines; then those in branches and loops, unobserved."""
        lines = {launch.line for launch in self.wrapper.launches}
        for launch, seen in zip(self.wrapper.launches, self.seen, strict=True):
            yield self._error(launch, seen)
        for kernel in self.code.kernels:
            for call in kernel.calls:
                if call.line not in lines:
                    launch = Launch(kernel.name, call.handle, call.line, call.nodes, ())
                    yield self._error(launch, Seen(reasons=["it runs inside of a branch or a loop"]))

    def _error(self, launch: Launch, seen: Seen) -> KernelError:
        worst = max(seen.outputs, key=lambda output: (output.judged.excess, output.judged.error.rmse), default=None)
        nodes = launch.nodes or tuple(
            held.node
            for number, point in enumerate(self.wrapper.points)
            if self.wrapper.launches[point.launch] is launch
            for held in self.held.get(number, ())
        )
        file, line = self._place([worst.held.node] if worst else [], nodes)
        bad = worst is not None and worst.judged.excess > 1
        error = KernelError(
            frame=self.frame,
            part=self.graph.part,
            name=launch.name,
            handle=launch.handle,
            wrapper_line=launch.line,
            graph=GraphId(self.frame, "post_grad", self.graph.part),
            nodes=nodes,
            file=file,
            line=line,
            observed=worst is not None,
            reason=self._reason(seen, bad),
            bad=bad,
        )
        if worst is None:
            return error
        return _with(error, worst, seen)

    def _reason(self, seen: Seen, bad: bool) -> str:
        if seen.outputs:
            if bad and seen.unobserved:
                return f"its input {seen.unobserved[0]} could not be compared"
            return next(iter(seen.reasons), "")
        if self.problem or not self.called:
            return self.problem or "its graph was not called"
        if seen.reasons:
            return seen.reasons[0]
        return "its buffers hold steps inside of a node, not a node's value" if seen.ran else "it did not run"

    def _place(self, first: list[str], nodes: tuple[str, ...]) -> tuple[str, int]:
        for name in (*first, *nodes):
            if name in self.nodes:
                file, line, _ = user_line(self.nodes[name].meta.get("stack_trace") or "")
                if file:
                    return file, line
        return "", 0


def _with(error: KernelError, worst: Output, seen: Seen) -> KernelError:
    return replace(
        error,
        error=worst.judged.error.rmse,
        input_error=seen.input_error.rmse,
        eager_error=worst.judged.eager.rmse,
        buffer=worst.held.name,
        node=worst.held.node,
        diff=worst.diff,
    )


def _changes(graph: comparing.InductorGraph, nodes: Mapping[str, Node]) -> dict[str, set[str]]:
    """Input or buffer -> the nodes that write to it in place."""
    own = {buffer.name: buffer.node for buffer in graph.buffers}
    changes: dict[str, set[str]] = {}
    for buffer in graph.buffers:
        changing = {
            name for name in buffer.origins if name in nodes and comparing.changes_arguments(nodes[name].target)
        }
        for name in buffer.writes:
            changes.setdefault(name, set()).update(changing, {own.get(name, "")} & nodes.keys())
    return changes


def _gives_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), Tensor)


def _makes_steps(node: Node) -> bool:
    value = node.meta.get("val")
    is_whole = isinstance(value, Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex)
    return is_whole or bool(_STEPS.fullmatch(fx.op_name(node.target)))


def _worst(sizes: list[Size]) -> Size:
    return Size(max((size.rmse for size in sizes), default=0.0), max((size.maximum for size in sizes), default=0.0))


def _like(reference: Both, value: Tensor) -> Both:
    """The reference in the buffer's shape, which may differ from the node's in dims of size 1. Raises Unknown."""
    exact, own = reference.exact, reference.own
    if not isinstance(exact, Tensor) or not isinstance(own, Tensor):
        raise Unknown("its node's value is not a tensor")
    if exact.shape == value.shape:
        return reference
    if [size for size in exact.shape if size != 1] != [size for size in value.shape if size != 1]:
        raise Unknown(f"its buffer has shape {tuple(value.shape)}, its node {tuple(exact.shape)}")
    return Both(exact.reshape(value.shape), own.reshape(value.shape))


def _part(reference: Both, whole: Tensor, part: Tensor) -> Both:
    """The part of the reference that lies where `part` lies in `whole`."""

    def cut(values: Tensor) -> Tensor:
        if values.shape != whole.shape:
            raise Unknown(f"its buffer has shape {tuple(whole.shape)}, its node {tuple(values.shape)}")
        laid_out = torch.empty_strided(whole.shape, whole.stride(), dtype=values.dtype, device=values.device)
        return laid_out.copy_(values).as_strided(
            part.shape, part.stride(), part.storage_offset() - whole.storage_offset()
        )

    return Both(cut(reference.exact), cut(reference.own))


def _diff(reference: Both, value: Tensor, name: str) -> TensorDiff:
    return compare_tensors(reference.exact.to(value.dtype), value, full=True, name=name)
