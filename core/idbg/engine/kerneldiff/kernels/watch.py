"""Watch the launches of one compiled graph, and compare what they write with their nodes.

For the run, the wrapper's function `call` gets other bytecode: the same statements, and after each launch a call of
ours with the buffers that it wrote. They are compared at once, before a later kernel reuses their memory: with the
values of the post-grad graph's nodes for the launch's actual inputs (its own error, by which it is judged), and for the
graph's inputs (with all earlier errors).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, fx
from idbg.engine.instrument.wrapper_code import Instrumented, output_code
from idbg.engine.instrument.wrapper_lines import AFTER, ENTER, RETURNED, Launch, Wrapper, read_wrapper
from idbg.engine.kerneldiff.float64.rounding import SAMPLES
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer, changes_of, fitted, node_buffers, shaped
from idbg.engine.kerneldiff.kernels.chains import completed_by, with_chain
from idbg.engine.kerneldiff.kernels.drawn_shares import KeptShares, kept_shares
from idbg.engine.kerneldiff.kernels.inputs import InputChecksums, root, snapshot, written_inputs
from idbg.engine.kerneldiff.kernels.interpreter import Interpreter, NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.launch_references import LaunchReferences
from idbg.engine.kerneldiff.kernels.launch_result import BufferResult, LaunchResult
from idbg.engine.kerneldiff.kernels.live import LiveMemory, Overwrite
from idbg.engine.kerneldiff.kernels.nonfinite import new_nonfinite
from idbg.engine.kerneldiff.kernels.returned import LostValue, ReturnedValues
from idbg.engine.kerneldiff.kernels.user_reference import unreferenced
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue, is_uninitialized, written_part
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, errors_of, judge_launch
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.engine.kerneldiff.tensors.compare import compare_tensors
from idbg.schema.diff import KernelError
from idbg.schema.errors import first_line
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import GraphId
from idbg.schema.remarks import Remark

_STEPS = re.compile(r"(sign|floor|ceil|round|trunc|frac|fmod|remainder|floor_divide|argmax|argmin|bucketize)(\..*)?")


@dataclass(frozen=True)
class _CallReferences:
    """The reference values of the observed call: for the graph's inputs, and for each launch's own."""

    graph: Interpreter
    launches: LaunchReferences


class Watch:
    """One graph's wrapper, and what its launches wrote in its first call."""

    def __init__(self, graph: comparing.InductorGraph, k: float, count: Callable[[], int]) -> None:
        """`count` returns the position in the run of a graph that is called now, from 1."""
        self.graph = graph
        self.k = k
        self.count = count
        self.called = 0  # 1 for the first graph that was called, and so on; 0 before
        self.code = output_code(graph)
        self.frame = self.code.frame
        self.nodes: dict[str, Node] = {node.name: node for node in graph.gm.graph.nodes}
        placeholders = [node for node in graph.gm.graph.nodes if node.op == "placeholder"]
        self.inputs: dict[Node, str] = dict(zip(placeholders, graph.inputs, strict=False))
        buffers = {buffer.name for buffer in graph.buffers}
        changes = changes_of(graph)
        self.wrapper: Wrapper = read_wrapper(self.code, {*graph.inputs, *buffers}, changes)
        self.written = written_inputs(graph, self.wrapper)
        self.live = LiveMemory(graph, self.wrapper)
        self.instrumented = Instrumented(graph.module, self.wrapper.instrumented(), ENTER, AFTER, RETURNED)
        self.buffers = node_buffers(graph, self.wrapper, changes)
        self.last = {point.launch: number for number, point in enumerate(self.wrapper.points)}
        self.results = [LaunchResult() for _ in self.wrapper.launches]
        self.sizes: dict[str, Size] = {}  # the error of each buffer
        self.unobserved: set[str] = set()
        self.references: _CallReferences | None = None
        self.untouched = InputChecksums({})
        self.returned_values = ReturnedValues(graph, {name: root(name, self.wrapper) for name in self.wrapper.writes})
        self.dropouts: dict[object, tuple[NodeBuffer, NodeState, Tensor]] = {}  # whose mask is written next
        self.problem = ""
        self.writers: dict[str, set[int]] = {}  # of each input or buffer, the launches that write to its memory
        for name, points in self.wrapper.writes.items():
            writers = self.writers.setdefault(root(name, self.wrapper), set())
            writers.update(self.wrapper.points[point].launch for point in points)
        self.arguments: dict[str, Tensor] = {}  # those that the graph writes to, in the observed call
        self.call_inputs: tuple[object, ...] | None = None  # of its first call, as they were then

    def start(self) -> None:
        """Have the wrapper call `enter`, `after` and `returned`."""
        self.instrumented.start({ENTER: self.enter, AFTER: self.after, RETURNED: self.returned})

    def stop(self) -> None:
        """Restore the wrapper's own code, and free the reference values."""
        self.instrumented.stop()
        self.references = None
        self.arguments = {}

    def state(self, each: NodeBuffer) -> NodeState:
        """The node that a buffer holds, with the changes in place that it has there."""
        return NodeState(self.nodes[each.node], tuple(self.nodes[name] for name in each.changes))

    def buffers_of(self, launch: int) -> list[NodeBuffer]:
        """The buffers that this launch writes and that hold a node."""
        points = (number for number, point in enumerate(self.wrapper.points) if point.launch == launch)
        return [each for number in points for each in self.buffers.get(number, ())]

    # Called by the wrapper

    def enter(self, args: list[object]) -> None:
        """Called with the arguments of `call`: keeps them as they are now, in the first call only."""
        self.references = None
        if self.called:
            return
        self.called = self.count()
        launches = [list(map(self.state, self.buffers_of(number))) for number in range(len(self.wrapper.launches))]
        wanted = Counter(node for launch in launches for state in launch for node in state.nodes)
        steps = [list(dict.fromkeys(launch)) for launch in launches]
        try:
            with torch.no_grad():
                inputs = snapshot(args, [name in self.written for name in self.graph.inputs])
                graph = OrderedGraph(self.graph.gm)
                references = Interpreter.from_inputs(graph, inputs, wanted)
                self.call_inputs = tuple(inputs)
                self.live.hold(dict(zip(self.graph.inputs, args, strict=True)))
                named = zip(self.graph.inputs, args, strict=True)
                self.arguments = {
                    name: value for name, value in named if name in self.written and isinstance(value, Tensor)
                }
                self.references = _CallReferences(references, LaunchReferences(graph, inputs, steps))
                own = zip(self.inputs, inputs, args, strict=True)
                self.untouched = InputChecksums({node: value for node, value, argument in own if value is argument})
        except (RuntimeError, ValueError) as error:  # out of memory, or arguments that are not the graph's
            self.problem = f"the inputs could not be kept: {first_line(error)}"
            self.references = None

    def after(self, number: int, *values: object) -> None:
        """Called at the point of this number with the tensors of its names: compares those that hold a node."""
        if self.references is None:
            return
        point, launches = self.wrapper.points[number], self.references.launches
        result = self.results[point.launch]
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            if not result.ran:
                self._read_inputs(self.wrapper.launches[point.launch], result)
                changed = self.untouched.overwritten(launches.inputs_of(point.launch))
                result.overwritten = [self.inputs[node] for node in changed]
            named = dict(zip(point.names, values, strict=True))
            comparison = _PointComparison(self, self.references, number, named)
            comparison.run()
            comparison.judge_late_reads(partial(self.read_late, point.launch))
            self.live.hold(named, number)
            if number == self.last[point.launch]:
                for one in self.live.overwritten(point.launch):
                    self._overwritten(one, result, launches)
                launches.release(point.launch)
        self._pass_on(point.names, result)
        device = next((value.device for value in values if isinstance(value, Tensor)), None)
        if device is not None:  # the program goes on, and allocates
            self.references.graph.memory.make_room(device)

    def _overwritten(self, one: Overwrite, result: LaunchResult, launches: LaunchReferences) -> None:
        """Blame the launch, and not its readers, for what it wrote over."""
        nodes = [node for node, name in self.inputs.items() if name == one.name]
        self.untouched.overwritten(dict.fromkeys(nodes, one.value))
        held = (each for at in self.buffers.values() for each in at if each.name == one.name and not each.whole)
        nodes += [self.nodes[name] for each in held for name in (each.node, *each.changes)]
        launches.overwrite(nodes, one.value)
        self.unobserved.add(one.name)
        result.overwrites = result.overwrites or self._overwrite_reason(one)

    def read_late(self, launch: int) -> Iterator[tuple[Node, Tensor, Remark]]:
        """The inputs of the graph that this launch reads after an earlier one has written to them, though the graph
        reads them as they came; each with its memory and the reason.
        """
        assert self.references is not None
        taken = {root(name, self.wrapper) for name in self.wrapper.launches[launch].takes}
        for node in self.references.launches.inputs_of(launch):
            name = self.inputs[node]
            writers = self.writers.get(name, set())
            before = max((writer for writer in writers if writer < launch), default=None)
            if name in taken and name in self.arguments and before is not None and launch not in writers:
                writer = self.wrapper.launches[before]
                by = f"{writer.handle or writer.name} (line {writer.line})"
                yield node, self.arguments[name], Remark("read late", name, by=by)

    def _overwrite_reason(self, one: Overwrite) -> Remark:
        if one.reader is None:
            return Remark("reused", one.by, one.name)
        reader = self.wrapper.launches[one.reader]
        read_by = f"{reader.handle or reader.name} (line {reader.line})"
        if not one.by:
            return Remark("argument overwritten", one.name, by=read_by)
        return Remark("reused, read", one.by, one.name, read_by)

    def wrong_reuse(self, error: KernelError) -> Remark | None:
        """Why the wrapper, and not this launch, is the cause; None if it is not."""
        pairs = zip(self.wrapper.launches, self.results, strict=True)
        how = next((result.overwrites for launch, result in pairs if launch.line == error.wrapper_line), None)
        return how if how and how.kind != "argument overwritten" else None

    def returned(self, values: object) -> None:
        """Called with what the wrapper is about to return."""
        if self.references is not None:
            with torch.no_grad():
                self.returned_values.returned(values)

    def lost(self) -> Iterator[LostValue]:
        """What the launches computed, or should have, and the graph's caller does not get."""
        if self.called and not self.problem:
            yield from self.returned_values.lost()

    def _read_inputs(self, launch: Launch, result: LaunchResult) -> None:
        result.ran = True
        sizes = [(name, self._size(name)) for name in launch.takes]
        result.input_error = _worst([size or Size() for _, size in sizes])
        result.unobserved = [name for name, size in sizes if size is None or name in self.unobserved]

    def _size(self, name: str) -> Size | None:
        """The buffer's error, None if unknown; the error of the buffer whose memory it has, if that is known."""
        return self.sizes.get(self._known(name), Size() if self._known(name) in self.graph.inputs else None)

    def _known(self, name: str) -> str:
        while name not in self.sizes and name in self.wrapper.bases:
            name = self.wrapper.bases[name]
        return name

    def _pass_on(self, names: tuple[str, ...], result: LaunchResult) -> None:
        """Take a buffer that could not be compared to be as wrong as the launch's inputs and outputs."""
        known = _worst([result.input_error, *(output.error for output in result.outputs if output.error)])
        for name in names:
            if name not in self.sizes:
                self.sizes[name] = known
                self.unobserved.add(name)

    # The result

    def errors(self) -> Iterator[KernelError]:
        """Every launch of the wrapper, in the order of its lines; then those in branches and loops, unobserved."""
        lines = {launch.line for launch in self.wrapper.launches}
        errors = [self._launch_error(number) for number in range(len(self.wrapper.launches))]
        chains = completed_by(self.wrapper, self.results)
        for number, error in enumerate(errors):
            if number not in chains:
                yield error
                continue
            last, output = chains[number]
            yield with_chain(error, errors[last], output)
        for kernel in self.code.kernels:
            for call in kernel.calls:
                if call.line not in lines:
                    launch = Launch(kernel.name, call.handle, call.line, call.nodes, ())
                    yield self._error(
                        launch, LaunchResult(reasons=["it runs inside of a branch or a loop"]), call.nodes
                    )

    def _launch_error(self, number: int) -> KernelError:
        launch = self.wrapper.launches[number]
        return self._error(
            launch, self.results[number], launch.nodes or tuple(each.node for each in self.buffers_of(number))
        )

    def nan_origins(self) -> Iterator[NanOrigin]:
        """NaN and infinities that launches wrote where eager has none, in the order of the wrapper's lines."""
        for launch, result in zip(self.errors(), self.results, strict=False):
            yield from (one.origin(launch, *self._place([one.node], ())) for one in result.nonfinite)

    def _error(self, launch: Launch, result: LaunchResult, nodes: tuple[str, ...]) -> KernelError:
        file, line = self._place([result.worst.buffer.node] if result.worst else [], nodes)
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
        )
        return result.record_of(error, self.problem or ("" if self.called else "its graph was not called"))

    def _place(self, first: list[str], nodes: tuple[str, ...]) -> tuple[str, int]:
        for name in (*first, *nodes):
            if name in self.nodes:
                file, line, _ = user_line(self.nodes[name].meta.get("stack_trace") or "")
                if file:
                    return file, line
        return "", 0


class _PointComparison:
    """Compares the buffers that a launch has written at one point of its wrapper; `values` are all tensors there."""

    def __init__(self, watch: Watch, references: _CallReferences, number: int, values: Mapping[str, object]) -> None:
        launch = watch.wrapper.points[number].launch
        self.watch, self.references, self.values = watch, references, values
        self.result = watch.results[launch]
        names = watch.wrapper.launches[launch].nodes
        self.steps = any(makes_steps(watch.nodes[name]) for name in names if name in watch.nodes)
        self.buffers = [each for each in watch.buffers.get(number, ()) if isinstance(values[each.name], Tensor)]

    def run(self) -> None:
        """Compare them all, then record what later launches read."""
        groups: dict[NodeState, list[NodeBuffer]] = {}
        for each in self.buffers:
            state = self.watch.state(each)
            if comparing.is_random(state.node):
                self._take_random(each, state)
            else:
                groups.setdefault(state, []).append(each)
        written: list[tuple[NodeState, Tensor]] = []
        for state, buffers in groups.items():
            like = self._compare(state, buffers)
            whole = [self._value(each) for each in buffers if not each.whole]
            written += [(state, value if like is None else shaped(value, like).to(like.dtype)) for value in whole[:1]]
        for state, value in written:
            self.watch.returned_values.computed(state.node.name, value)
            self.references.launches.record(state, value)

    def judge_late_reads(self, late: Callable[[], Iterable[tuple[Node, Tensor, Remark]]]) -> None:
        """Judge what is wrong again, with what the inputs hold that are read `late`: where it is right then, the order
        of the launches is wrong, and not the launch.
        """
        outputs, launches = self.result.outputs, self.references.launches
        wrong = [at for at, each in enumerate(outputs) if each.excess > 1 and each.buffer in self.buffers]
        for node, held, why in late() if wrong else ():
            before = launches.known[node]
            launches.overwrite([node], held)
            again = [self._judged(outputs[at].buffer) for at in wrong]
            launches.known[node] = before
            if all(judged is not None and judged.excess <= 1 for judged in again):
                for at, judged in zip(wrong, again, strict=True):
                    outputs[at] = replace(outputs[at], judged=judged, diff=None)
                self.result.overwrites = why
                return

    def _judged(self, each: NodeBuffer) -> BufferVerdict | None:
        """The verdict on a buffer for what its launch received; None where it has none."""
        state = self.watch.state(each)
        from_launch = self._reference(lambda: self.references.launches.value(state))
        return self._output(each, state, (None, from_launch)).judged

    def _value(self, each: NodeBuffer) -> Tensor:
        return cast("Tensor", self.values[each.name])

    def _take_random(self, each: NodeBuffer, state: NodeState) -> None:
        value, dropouts = self._value(each), self.watch.dropouts
        self.references.graph.set_actual(state.node, value)
        self.references.launches.record(state, value)
        self.watch.sizes[each.name] = Size()
        self.result.reasons.append("it draws random numbers, which are taken as they are")
        source = state.node.args[0] if state.node.args else None
        if comparing.dropout_of(state.node) is not None:
            dropouts[source] = (each, state, value)
        elif source in dropouts:
            self._dropout(*dropouts.pop(source), value)

    def _dropout(self, each: NodeBuffer, state: NodeState, value: Tensor, mask: Tensor) -> None:
        """Judge a dropout by its input and the mask that it drew."""
        node, share = cast("tuple[Node, float]", comparing.dropout_of(state.node))
        try:
            reference = fitted(self.references.launches.after_dropout(node, share, mask), value, None)
        except (NotComputable, RuntimeError) as error:  # usually out of memory
            self.result.reasons.append(f"it is not judged: {first_line(error)}")
            return
        judged = judge_launch(value, reference, lambda _: (), k=self.watch.k)
        self.result.outputs.append(_result(each, judged, reference, value, judged.error, judged.eager))

    def _compare(self, state: NodeState, buffers: Sequence[NodeBuffer]) -> Tensor | None:
        """Compare the buffers that hold this value, or parts of it. Returns the program's own value of the node."""
        like: Tensor | None = None
        try:
            from_start = self._reference(lambda: self.references.graph.value(state))
            from_launch = self._reference(lambda: self.references.launches.value(state), "it is not judged: ")
            like = next((one.own for one in (from_start, from_launch) if one and isinstance(one.own, Tensor)), None)
            for each in buffers:
                output = self._output(each, state, (from_start, from_launch))
                if output.judged is not None or output.error is not None:
                    self.result.outputs.append(output)
                if output.error is not None:
                    self.watch.sizes[each.name] = output.error
        except RuntimeError as error:  # usually out of memory: the program itself continues
            self.result.reasons.append(f"{buffers[0].name} could not be compared: {first_line(error)}")
        for kernel in filter(None, map(unreferenced, state.changes)):
            unchecked = "it is compared with itself, run by Triton"
            self.result.reasons.append(f"{kernel} has no reference (idbg.reference): {unchecked}")
        for _ in buffers:
            self.references.graph.release(state)
        return like

    def _reference(self, compute: Callable[[], ReferenceValue], problem: str = "") -> ReferenceValue | None:
        """The reference value; None, with a reason, if it cannot be computed."""
        try:
            return compute()
        except NotComputable as error:
            self.result.reasons.append(f"{problem}{error}")
            return None

    def _output(
        self, each: NodeBuffer, state: NodeState, references: tuple[ReferenceValue | None, ReferenceValue | None]
    ) -> BufferResult:
        value, whole = self._value(each), cast("Tensor | None", self.values.get(each.whole))
        try:
            from_start, from_launch = (one and fitted(one, value, whole) for one in references)
            if is_uninitialized(state.node):
                from_start, from_launch = (one and written_part(one, value) for one in (from_start, from_launch))
        except NotComputable as reason:
            self.result.reasons.append(str(reason))
            return BufferResult(each, None)
        if (eagers := from_start or from_launch) is not None:
            self.result.nonfinite += new_nonfinite(each.node, value, eagers.own)
        error, eager = errors_of(value, from_start) if from_start else (None, None)
        if from_launch is None:
            return BufferResult(each, None, error, eager)

        def resample(times: float) -> Iterator[Tensor]:
            for seed in range(SAMPLES if times == 1 else 2 * SAMPLES):
                other = self.references.launches.resampled(state, seed, times)
                yield cast("Tensor", fitted(ReferenceValue(other, other), value, whole).own)

        try:
            judged = judge_launch(value, from_launch, resample, k=self.watch.k, steps=self.steps)
        except NotComputable as reason:
            self.result.reasons.append(f"it is not judged: {reason}")
            return BufferResult(each, None, error, eager)
        result = _result(each, judged, from_launch, value, error, eager)
        return replace(result, shares=self._shares(state, from_launch, value)) if judged.excess > 1 else result

    def _shares(self, state: NodeState, reference: ReferenceValue, value: Tensor) -> KeptShares | None:
        """What a random mask keeps, if it is another share than the graph's. A backward's inputs may come of it."""
        if state.changes or self.watch.graph.part == "backward":
            return None
        return kept_shares(*self.references.launches.computed_by(state), value, reference.own)


def _result(
    each: NodeBuffer,
    judged: BufferVerdict,
    reference: ReferenceValue,
    value: Tensor,
    error: Size | None,
    eager: Size | None,
) -> BufferResult:
    """The result of a judged buffer, with the full comparison if it is bad."""
    diff = None
    if judged.excess > 1:
        diff = compare_tensors(reference.exact.to(value.dtype), value, full=True, name=each.node)
    return BufferResult(each, judged, error, eager, diff)


def makes_steps(node: Node) -> bool:
    """Whether the smallest error of its inputs can change its result by a step."""
    value = node.meta.get("val")
    is_whole = isinstance(value, Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex)
    return is_whole or bool(_STEPS.fullmatch(fx.op_name(node.target)))


def _worst(sizes: list[Size]) -> Size:
    return Size(max((size.rmse for size in sizes), default=0.0), max((size.maximum for size in sizes), default=0.0))
