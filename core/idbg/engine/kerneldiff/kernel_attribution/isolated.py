"""Compare what a launch writes in isolation with what its nodes compute from the same inputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.float64.rounding import MOST_OPS, SAMPLES, PerturbedRounding
from idbg.engine.kerneldiff.kernel_attribution.memory import same_bits
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan, placeholders
from idbg.engine.kerneldiff.kernel_attribution.recorder import RecordedLaunch
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer, fitted
from idbg.engine.kerneldiff.kernels.interpreter import Interpreter, NodeState, OrderedGraph
from idbg.engine.kerneldiff.kernels.values import NotComputable, ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_launch
from idbg.engine.kerneldiff.kernels.watch import makes_steps
from idbg.schema.errors import first_line


@dataclass(frozen=True)
class IsolatedResult:
    """One buffer that the launch writes: the `reference` value of its node (on the CPU), a verdict for each isolated
    call, and for the value of the `run`. `varies`: the calls differ at random; `leftover`: they differ with the
    previous content of the buffer's memory.
    """

    buffer: NodeBuffer
    reference: ReferenceValue
    calls: tuple[BufferVerdict, ...]
    run: BufferVerdict
    varies: bool = False
    leftover: bool = False

    @property
    def worst(self) -> BufferVerdict:
        """The worst verdict of the isolated calls."""
        return max(self.calls, key=lambda call: call.excess)

    @property
    def bad(self) -> bool:
        """Whether an isolated call is wrong."""
        return self.worst.excess > 1


def judge_isolated(
    plan: LaunchPlan, recorded: RecordedLaunch, calls: list[dict[str, Tensor]]
) -> tuple[list[IsolatedResult], list[str]]:
    """The result for each buffer, and the reasons why there is none for some."""
    try:
        nodes = _NodeReferences(plan, recorded)
    except (NotComputable, RuntimeError, ValueError) as error:
        return [], [first_line(error)]
    results, reasons = [], []
    for buffer in plan.writes:
        in_run = recorded.written.get(buffer.name)
        values = [call[buffer.name] for call in calls if buffer.name in call]
        if in_run is None or not values:
            reasons.append(f"{buffer.name} was not seen")
            continue
        try:
            results.append(_judge(nodes, buffer, values, in_run))
        except (NotComputable, RuntimeError, ValueError) as error:
            reasons.append(first_line(error))
    return results, reasons


class _NodeReferences:
    """The values of a launch's nodes for its recorded inputs: in float64 on the CPU, and in eager on its device."""

    def __init__(self, plan: LaunchPlan, recorded: RecordedLaunch) -> None:
        """Raises NotComputable or ValueError where a node cannot be computed."""
        self.plan, self.regions = plan, recorded.regions
        self.inputs = [in_node_shape(node, recorded.node_values.get(node.name)) for node in placeholders(plan.nodes)]
        is_here = all(value.device.type == "cpu" for value in self.inputs if isinstance(value, Tensor))
        on_cpu = [value.cpu() if isinstance(value, Tensor) else value for value in self.inputs]
        self.own = _evaluate(plan.nodes, self.inputs, exact=is_here)
        self.exact = self.own if is_here else _evaluate(_on_cpu(plan.nodes), on_cpu)
        self.steps = any(makes_steps(node) for node in plan.nodes.graph.nodes if node.op == "call_function")

    def of(self, buffer: NodeBuffer) -> ReferenceValue:
        """The value that a buffer should hold. Raises NotComputable."""
        own, exact = self.own[buffer.node].own, self.exact[buffer.node].exact
        if not isinstance(own, Tensor):
            raise NotComputable("its node's value is not a tensor")
        return self._fitted(buffer, ReferenceValue(exact, own.cpu()))

    def resampled(self, buffer: NodeBuffer, times: float) -> Iterator[Tensor]:
        """Eager's values with its rounding errors perturbed, `times` as much."""
        for seed in range(SAMPLES if times == 1 else 2 * SAMPLES):
            with PerturbedRounding(seed, times, most_ops=MOST_OPS):
                other = _evaluate(self.plan.nodes, self.inputs, exact=False)[buffer.node].own.cpu()
            yield self._fitted(buffer, ReferenceValue(other, other)).own

    def _fitted(self, buffer: NodeBuffer, value: ReferenceValue) -> ReferenceValue:
        whole = self.regions.get(buffer.whole)
        return fitted(value, self.regions[buffer.name].layout, whole.layout if whole is not None else None)


def _judge(nodes: _NodeReferences, buffer: NodeBuffer, calls: list[Tensor], in_run: Tensor) -> IsolatedResult:
    """Judge one buffer in these calls and in the run; equal values are judged once."""
    reference, verdicts = nodes.of(buffer), list[BufferVerdict]()
    *values, last = (value.cpu() for value in (*calls, in_run))
    for at, value in enumerate((*values, last)):
        known = next((number for number in range(at) if same_bits(value, values[number])), None)
        if known is not None:
            verdicts.append(verdicts[known])
            continue
        resample = partial(nodes.resampled, buffer)
        verdicts.append(judge_launch(value, reference, resample, k=nodes.plan.watch.k, steps=nodes.steps))
    varies = not all(same_bits(value, values[0]) for value in values)
    leftover = varies and all(same_bits(value, values[at % 2]) for at, value in enumerate(values))
    return IsolatedResult(buffer, reference, tuple(verdicts[:-1]), verdicts[-1], varies and not leftover, leftover)


def _evaluate(gm: GraphModule, inputs: list[object], *, exact: bool = True) -> dict[str, ReferenceValue]:
    """The values of the nodes that the graph returns, after all of them were computed for these values of the
    placeholders, which stay unchanged. Raises NotComputable.
    """
    returned = gm.graph.output_node().all_input_nodes
    interpreter = Interpreter.from_inputs(OrderedGraph(gm), inputs, dict.fromkeys(returned, 1), exact=exact)
    values = interpreter.last_values(map(NodeState, returned))
    return {node.name: value for node, value in zip(returned, values, strict=True)}


def in_node_shape(node: Node, value: object) -> object:
    """A buffer's value in its node's shape, which may differ in dims of size 1. Raises ValueError."""
    meta = node.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(meta, torch.Tensor):
        if value is None:
            raise ValueError(f"the value of {node.name}, which it is computed from, could not be recorded")
        return value
    shape = tuple(fx.concrete(size) for size in meta.shape)
    if tuple(value.shape) == shape or any(size is None for size in shape):
        return value
    if [size for size in value.shape if size != 1] != [size for size in shape if size != 1]:
        raise ValueError(f"{node.name} has shape {shape}, and the buffer that holds it {tuple(value.shape)}")
    return value.reshape([int(str(size)) for size in shape])


def _on_cpu(gm: GraphModule) -> GraphModule:
    """The same nodes with the CPU in place of their devices."""
    cpu = torch.device("cpu")
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if "device" in node.kwargs:
            copies[node].kwargs = {**copies[node].kwargs, "device": cpu}
        copies[node].args = tuple(cpu if isinstance(value, torch.device) else value for value in copies[node].args)
    moved = GraphModule(gm, graph)
    for node in graph.nodes:
        value = comparing.attribute(moved, str(node.target)) if node.op == "get_attr" else None
        if isinstance(value, Tensor):
            module, _, name = str(node.target).rpartition(".")
            setattr(moved.get_submodule(module), name, value.cpu())
    return moved
