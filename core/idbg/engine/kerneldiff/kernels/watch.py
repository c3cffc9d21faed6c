"""What do the launches of one compiled graph write, and is it what their nodes stand for?

For the run, the wrapper's function `call` is given other bytecode: the same statements, and after each launch a call of
ours with the buffers that it wrote. They are compared at once, before a later kernel can reuse their memory: with what
the nodes of the post-grad graph give of what the launch itself was given (its own error, by which it is judged), and of
what the graph was given (with the error of all that came before).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.capture.fx import user_line
from idbg.engine.compat import comparing, fx
from idbg.engine.instrument.wrapper_code import Instrumented, output_code
from idbg.engine.instrument.wrapper_lines import AFTER, ENTER, RETURNED, Launch, Wrapper, read_wrapper
from idbg.engine.kerneldiff.float64.rounding import SAMPLES
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer, changes_of, fitted, held_at, shaped
from idbg.engine.kerneldiff.kernels.chains import completed_by, with_chain
from idbg.engine.kerneldiff.kernels.inputs import InputChecksums, Reuse, held, root, written_inputs, wrong_reuses
from idbg.engine.kerneldiff.kernels.launch_references import LaunchReferences, NodeState
from idbg.engine.kerneldiff.kernels.launch_result import BufferResult, LaunchResult
from idbg.engine.kerneldiff.kernels.nonfinite import appeared
from idbg.engine.kerneldiff.kernels.references import References
from idbg.engine.kerneldiff.kernels.returned import LostValue, ReturnedValues
from idbg.engine.kerneldiff.kernels.user_reference import unreferenced
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue, is_uninitialized, written_part
from idbg.engine.kerneldiff.kernels.verdict import errors_of, judge_launch
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.engine.kerneldiff.tensors.compare import compare_tensors
from idbg.schema.diff import KernelError, TensorDiff
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import GraphId

_STEPS = re.compile(r"(sign|floor|ceil|round|trunc|frac|fmod|remainder|floor_divide|argmax|argmin|bucketize)(\..*)?")


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
        placeholders = [node for node in graph.gm.graph.nodes if node.op == "placeholder"]
        self.inputs: dict[Node, str] = dict(zip(placeholders, graph.inputs, strict=False))
        buffers = {buffer.name for buffer in graph.buffers}
        changes = changes_of(graph)
        self.wrapper: Wrapper = read_wrapper(self.code, {*graph.inputs, *buffers}, changes)
        self.written = written_inputs(graph, self.wrapper)
        self.reuses = wrong_reuses(graph, self.wrapper)
        self.reused: dict[str, object] = {}  # the inputs whose memory is reused, as the run has them
        self.instrumented = Instrumented(graph.module, self.wrapper.instrumented(), ENTER, AFTER, RETURNED)
        self.held = held_at(graph, self.wrapper, changes)
        self.last = {point.launch: number for number, point in enumerate(self.wrapper.points)}
        self.seen = [LaunchResult() for _ in self.wrapper.launches]
        self.sizes: dict[str, Size] = {}  # the error of each buffer
        self.unobserved: set[str] = set()
        self.references: References | None = None
        self.isolated: LaunchReferences | None = None
        self.untouched = InputChecksums({})
        self.left = ReturnedValues(graph, {name: root(name, self.wrapper) for name in self.wrapper.writes})
        self.undropped: dict[
            object, tuple[NodeBuffer, NodeState, Tensor]
        ] = {}  # what dropouts gave whose mask comes next
        self.problem = ""
        self.given: tuple[object, ...] | None = None  # what its first call was given, as it was then

    def start(self) -> None:
        """Have the wrapper call `enter` and `after`."""
        self.instrumented.start({ENTER: self.enter, AFTER: self.after, RETURNED: self.returned})

    def stop(self) -> None:
        """Give the wrapper its own code back, and the reference values their memory."""
        self.instrumented.stop()
        self.references = self.isolated = None

    def _wanted(self, each: NodeBuffer) -> NodeState:
        return NodeState(self.nodes[each.node], tuple(self.nodes[name] for name in each.changes))

    def _held_by(self, launch: int) -> list[NodeBuffer]:
        points = (number for number, point in enumerate(self.wrapper.points) if point.launch == launch)
        return [each for number in points for each in self.held.get(number, ())]

    # Called by the wrapper

    def enter(self, args: list[object]) -> None:
        """Called first of all, with what `call` was given: keeps it as it is now, in the first call alone."""
        self.references = self.isolated = None
        if self.called:
            return
        self.called = self.count()
        launches = [self._held_by(number) for number in range(len(self.wrapper.launches))]
        wanted = Counter(node for launch in launches for each in launch for node in (each.node, *each.changes))
        try:
            with torch.no_grad():
                inputs = held(args, [name in self.written for name in self.graph.inputs])
                self.references = References(self.graph.gm, inputs, wanted)
                self.given = tuple(inputs)
                wrong = {reuse.input for reuse in self.reuses.values()}
                self.reused = {
                    name: value for name, value in zip(self.graph.inputs, args, strict=True) if name in wrong
                }
                steps = [list(dict.fromkeys(map(self._wanted, launch))) for launch in launches]
                self.isolated = LaunchReferences(self.graph.gm, inputs, steps)
                own = zip(self.inputs, inputs, args, strict=True)
                self.untouched = InputChecksums({node: value for node, value, given in own if value is given})
        except (RuntimeError, ValueError) as error:  # out of memory, or arguments that are not the graph's
            self.problem = f"the inputs could not be kept: {str(error).splitlines()[0]}"
            self.references = self.isolated = None

    def after(self, number: int, *values: object) -> None:
        """Called at the point of this number, with the tensors that its names hold: compares those that hold a node."""
        point = self.wrapper.points[number]
        launch, seen = self.wrapper.launches[point.launch], self.seen[point.launch]
        if self.references is None or self.isolated is None:
            return
        at = dict(zip(point.names, values, strict=True))
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            if not seen.ran:
                self._inputs(launch, seen)
                changed = self.untouched.overwritten(self.isolated.inputs_of(point.launch))
                seen.overwritten = [self.inputs[node] for node in changed]
            self._outputs(number, at, launch, seen)
            if number == self.last[point.launch]:
                self._reuse(point.launch, seen)
                self.isolated.done(point.launch)
        self._pass_on(point.names, seen)

    def _reuse(self, number: int, seen: LaunchResult) -> None:
        """Where the wrapper gave the launch memory that is still needed: it is to blame, and not what reads it."""
        reuse = self.reuses.get(number)
        if reuse is None or self.isolated is None:
            return
        seen.reused = self._said_of(reuse)
        node = next(node for node, name in self.inputs.items() if name == reuse.input)
        self.isolated.overwrite(node, self.reused.get(reuse.input))

    def _said_of(self, reuse: Reuse) -> str:
        said = f"the wrapper gives {reuse.buffer} the memory of the graph's input {reuse.input}"
        if reuse.reader is None:
            return f"{said}, and the program's own tensor is overwritten"
        reader = self.wrapper.launches[reuse.reader]
        return f"{said}, which {reader.handle or reader.name} (line {reader.line}) reads after it was overwritten"

    def wrong_reuse(self, error: KernelError) -> str:
        """Why the wrapper, and not this launch of it, is to blame; "" where it is not."""
        pairs = zip(self.wrapper.launches, self.seen, strict=True)
        return next((seen.reused for launch, seen in pairs if launch.line == error.wrapper_line), "")

    def returned(self, values: object) -> None:
        """Called with what the wrapper is about to return."""
        if self.references is not None:
            self.reused = {}
            with torch.no_grad():
                self.left.returned(values)

    def lost(self) -> Iterator[LostValue]:
        """What the launches made, or should have, and the graph's caller does not get."""
        if self.called and not self.problem:
            yield from self.left.lost()

    def _inputs(self, launch: Launch, seen: LaunchResult) -> None:
        seen.ran = True
        sizes = [(name, self._size(name)) for name in launch.takes]
        seen.input_error = _worst([size or Size() for _, size in sizes])
        seen.unobserved = [name for name, size in sizes if size is None or name in self.unobserved]

    def _size(self, name: str) -> Size | None:
        """The buffer's error, None if it is not known; where it is what another one came with, that is taken."""
        return self.sizes.get(self._known(name), Size() if self._known(name) in self.graph.inputs else None)

    def _known(self, name: str) -> str:
        while name not in self.sizes and name in self.wrapper.bases:
            name = self.wrapper.bases[name]
        return name

    def _outputs(self, number: int, at: Mapping[str, object], launch: Launch, seen: LaunchResult) -> None:
        assert self.isolated is not None
        groups: dict[NodeState, list[NodeBuffer]] = {}
        for each in self.held.get(number, ()):
            if isinstance(value := at[each.name], Tensor):
                wanted = self._wanted(each)
                if comparing.is_random(wanted.node):
                    self._take(each, wanted, value, seen)
                else:
                    groups.setdefault(wanted, []).append(each)
        left: list[tuple[NodeState, Tensor]] = []
        for wanted, buffers in groups.items():
            like = self._look(wanted, buffers, cast("Mapping[str, Tensor]", at), self._steps(launch), seen)
            whole = [cast("Tensor", at[each.name]) for each in buffers if not each.whole]
            left += [(wanted, _as_node(value, like)) for value in whole[:1]]
        for wanted, value in left:
            self.left.made(wanted.node.name, value)
            self.isolated.leave(wanted, value)

    def _take(self, each: NodeBuffer, wanted: NodeState, value: Tensor, seen: LaunchResult) -> None:
        assert self.references is not None and self.isolated is not None
        self.references.take(each.node, value)
        self.isolated.leave(wanted, value)
        self.sizes[each.name] = Size()
        seen.reasons.append("it draws random numbers, which are taken as they are")
        source = wanted.node.args[0] if wanted.node.args else None
        if comparing.dropout_of(wanted.node) is not None:
            self.undropped[source] = (each, wanted, value)
        elif source in self.undropped:
            self._dropout(*self.undropped.pop(source), value, seen)

    def _dropout(self, each: NodeBuffer, wanted: NodeState, value: Tensor, mask: Tensor, seen: LaunchResult) -> None:
        """Holds what dropout left against what it was given, by the mask that it drew: the mask is taken as it is."""
        node, share = cast("tuple[Node, float]", comparing.dropout_of(wanted.node))
        try:
            reference = fitted(cast("LaunchReferences", self.isolated).dropped(node, share, mask), value, None)
        except (NotComputable, RuntimeError) as error:  # out of memory, as a rule
            seen.reasons.append(f"it is not judged: {str(error).splitlines()[0]}")
            return
        judged = judge_launch(value, reference, lambda _: (), k=self.k)
        diff = _diff(reference, value, each.node) if judged.excess > 1 else None
        seen.outputs.append(BufferResult(each, judged, judged.error, judged.eager, diff))

    def _look(
        self,
        wanted: NodeState,
        buffers: Sequence[NodeBuffer],
        at: Mapping[str, Tensor],
        steps: bool,
        seen: LaunchResult,
    ) -> Tensor | None:
        """Compares the buffers that hold this value, or parts of it; gives the value as the program's own ops do."""
        like: Tensor | None = None
        try:
            from_start, from_given = self._from_start(buffers[0], seen), self._from_given(wanted, seen)
            like = next((one.own for one in (from_start, from_given) if one and isinstance(one.own, Tensor)), None)
            for each in buffers:
                output = self._output(each, wanted, (from_start, from_given), at, steps, seen)
                if output.judged is not None or output.error is not None:
                    seen.outputs.append(output)
                if output.error is not None:
                    self.sizes[each.name] = output.error
        except RuntimeError as error:  # out of memory, as a rule: the program itself goes on
            seen.reasons.append(f"{buffers[0].name} could not be compared: {str(error).splitlines()[0]}")
        for kernel in filter(None, map(unreferenced, wanted.changes)):
            seen.reasons.append(f"{kernel} has no reference (idbg.reference): it is held against itself, run by Triton")
        for each in buffers:
            for name in (each.node, *each.changes):
                cast("References", self.references).done(name)
        return like

    def _from_start(self, each: NodeBuffer, seen: LaunchResult) -> ReferenceValue | None:
        """What it should hold, given what the graph was given."""
        references = cast("References", self.references)
        try:
            for change in each.changes:
                references.value(change)
            return references.value(each.node)
        except NotComputable as unknown:
            seen.reasons.append(str(unknown))
            return None

    def _from_given(self, wanted: NodeState, seen: LaunchResult) -> ReferenceValue | None:
        """What it should hold, given what the launch was given."""
        try:
            return cast("LaunchReferences", self.isolated).value(wanted)
        except NotComputable as unknown:
            seen.reasons.append(f"it is not judged: {unknown}")
            return None

    def _output(
        self,
        each: NodeBuffer,
        wanted: NodeState,
        references: tuple[ReferenceValue | None, ReferenceValue | None],
        at: Mapping[str, Tensor],
        steps: bool,
        seen: LaunchResult,
    ) -> BufferResult:
        value, whole = at[each.name], at.get(each.whole)
        try:
            from_start, from_given = (one and fitted(one, value, whole) for one in references)
            if is_uninitialized(wanted.node):
                from_start, from_given = (one and written_part(one, value) for one in (from_start, from_given))
        except NotComputable as unknown:
            seen.reasons.append(str(unknown))
            return BufferResult(each, None)
        if (eagers := from_start or from_given) is not None:
            seen.appeared += appeared(each.node, value, eagers.own)
        error, eager = errors_of(value, from_start) if from_start else (None, None)
        if from_given is None:
            return BufferResult(each, None, error, eager)

        def others(times: float) -> Iterator[Tensor]:
            for seed in range(SAMPLES if times == 1 else 2 * SAMPLES):
                other = cast("LaunchReferences", self.isolated).otherwise(wanted, seed, times)
                yield cast("Tensor", fitted(ReferenceValue(other, other), value, whole).own)

        judged = judge_launch(value, from_given, others, k=self.k, steps=steps)
        diff = _diff(from_given, value, each.node) if judged.excess > 1 else None
        return BufferResult(each, judged, error, eager, diff)

    def _pass_on(self, names: tuple[str, ...], seen: LaunchResult) -> None:
        """A buffer that could not be compared is taken to be as wrong as what it came with."""
        known = _worst([seen.input_error, *(output.error for output in seen.outputs if output.error)])
        for name in names:
            if name not in self.sizes:
                self.sizes[name] = known
                self.unobserved.add(name)

    def _steps(self, launch: Launch) -> bool:
        return any(makes_steps(self.nodes[name]) for name in launch.nodes if name in self.nodes)

    # The result

    def errors(self) -> Iterator[KernelError]:
        """Every launch of the wrapper, in the order of its lines; then those in branches and loops, unobserved."""
        lines = {launch.line for launch in self.wrapper.launches}
        errors = [self._launch_error(number) for number in range(len(self.wrapper.launches))]
        chains = completed_by(self.wrapper, self.seen)
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
            launch, self.seen[number], launch.nodes or tuple(each.node for each in self._held_by(number))
        )

    def births(self) -> Iterator[NanOrigin]:
        """NaN and infinities that launches wrote where eager has none, in the order of the wrapper's lines."""
        for told, seen in zip(self.errors(), self.seen, strict=False):
            yield from (one.birth(told, *self._place([one.node], ())) for one in seen.appeared)

    def _error(self, launch: Launch, seen: LaunchResult, nodes: tuple[str, ...]) -> KernelError:
        file, line = self._place([seen.worst.held.node] if seen.worst else [], nodes)
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
        return seen.told(error, self.problem or ("" if self.called else "its graph was not called"))

    def _place(self, first: list[str], nodes: tuple[str, ...]) -> tuple[str, int]:
        for name in (*first, *nodes):
            if name in self.nodes:
                file, line, _ = user_line(self.nodes[name].meta.get("stack_trace") or "")
                if file:
                    return file, line
        return "", 0


def makes_steps(node: Node) -> bool:
    """Whether the smallest error of what it takes can change its result by a step."""
    value = node.meta.get("val")
    is_whole = isinstance(value, Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex)
    return is_whole or bool(_STEPS.fullmatch(fx.op_name(node.target)))


def _worst(sizes: list[Size]) -> Size:
    return Size(max((size.rmse for size in sizes), default=0.0), max((size.maximum for size in sizes), default=0.0))


def _as_node(value: Tensor, like: Tensor | None) -> Tensor:
    """A buffer's value in its node's shape and dtype."""
    return value if like is None else shaped(value, like).to(like.dtype)


def _diff(reference: ReferenceValue, value: Tensor, name: str) -> TensorDiff:
    return compare_tensors(reference.exact.to(value.dtype), value, full=True, name=name)
