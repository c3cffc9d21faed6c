"""What does a launch give alone, on what it was really called with, and what do its nodes give of the same?"""

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import comparing, fx
from idbg.engine.kerneldiff.float64.rounding import SAMPLES, PerturbedRounding
from idbg.engine.kerneldiff.kernel_attribution.definition import definition_of, only_written
from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryCopies, MemoryRegion, same
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.engine.kerneldiff.kernel_attribution.recorder import RecordedLaunch
from idbg.engine.kerneldiff.kernels.buffers import NodeBuffer, changes_of, fitted
from idbg.engine.kerneldiff.kernels.values import (
    AS_OWN,
    NotComputable,
    ReferenceValue,
    changed_by,
    changes_more,
    computed,
)
from idbg.engine.kerneldiff.kernels.verdict import BufferVerdict, judge_launch
from idbg.engine.kerneldiff.kernels.watch import makes_steps

CALLS = 4  # alone; every second one finds other values in what it only writes


@dataclass(frozen=True)
class IsolatedResult:
    """One buffer that the launch writes: what its nodes give (`reference`, on the CPU), and what was found of it in
    each call of the launch alone, and of what it left in the run. `varies`: not every call gave the same; `leftover`:
    what it gave depends on what its memory held before.
    """

    held: NodeBuffer
    reference: ReferenceValue
    calls: tuple[BufferVerdict, ...]
    run: BufferVerdict
    varies: bool = False
    leftover: bool = False

    @property
    def worst(self) -> BufferVerdict:
        """Of the calls alone, the worst."""
        return max(self.calls, key=lambda call: call.excess)

    @property
    def bad(self) -> bool:
        """Whether some call alone was wrong."""
        return self.worst.excess > 1


def replay(plan: LaunchPlan, taken: RecordedLaunch) -> list[dict[str, Tensor]]:
    """What the launch writes in each of CALLS calls, by the buffers' names. Raises what it raises alone."""
    launch = plan.launch
    outs = only_written(launch, definition_of(plan.watch.code.text, launch), changes_of(plan.watch.graph))
    code = compile(ast.parse(launch.text, mode="eval"), "<the launch>", "eval")
    given: list[dict[str, Tensor]] = []
    for number in range(CALLS):
        clones = taken.clones.again()
        values = {
            name: clones.at(value) if isinstance(value, MemoryRegion) else value for name, value in taken.values.items()
        }
        for name in outs if number % 2 else ():
            out, before = values[name], given[0].get(name) if given else None
            if isinstance(out, Tensor):
                spoil(out, before)
        with torch.no_grad(), _finished(values):
            result = eval(code, vars(plan.watch.graph.module), values)  # the wrapper's own call, on copies
        given.append(dict(_written(plan, taken, clones, result)))
    return given


def spoil(out: Tensor, before: Tensor | None) -> None:
    """Fill it with what nobody could take for its value: NaN, and of integers the opposite of what it should be."""
    if out.dtype.is_floating_point or out.dtype.is_complex:
        out.fill_(float("nan"))
    elif before is not None and before.shape == out.shape:
        out.copy_(before.logical_not() if out.dtype == torch.bool else before.bitwise_not())


@contextmanager
def _finished(values: Mapping[str, object]) -> Iterator[None]:
    """On a GPU: the stream that is called for may be another than that which copies."""
    devices = {value.device for value in values.values() if isinstance(value, Tensor) and value.device.type == "cuda"}
    for device in devices:
        torch.cuda.synchronize(device)
    yield
    for device in devices:
        torch.cuda.synchronize(device)


def _written(
    plan: LaunchPlan, taken: RecordedLaunch, clones: MemoryCopies, result: object
) -> Iterator[tuple[str, Tensor]]:
    names: dict[str, object] = dict.fromkeys(plan.launch.assigned, result)
    for held in plan.writes:
        place = taken.places.get(held.name)
        if place is not None and place.start in clones.storages:
            yield held.name, clones.at(place)
            continue
        value = named(plan, names, held.name)
        if isinstance(value, Tensor):
            yield held.name, value


def named(plan: LaunchPlan, names: dict[str, object], name: str) -> object:
    """What a name stands for that is a member of the launch's result."""
    if name not in names and name in plan.wrapper.members:
        text = plan.wrapper.members[name]
        named(plan, names, text.partition("[")[0])
        names[name] = eval(text, {}, names)  # as the wrapper itself has it: `buf8[0]`
    return names.get(name)


def judge_isolated(
    plan: LaunchPlan, taken: RecordedLaunch, calls: list[dict[str, Tensor]]
) -> tuple[list[IsolatedResult], list[str]]:
    """What was found of each buffer, and why of some nothing is known."""
    try:
        nodes = _NodeReferences(plan, taken)
    except (NotComputable, RuntimeError, ValueError) as error:
        return [], [str(error).splitlines()[0]]
    found, reasons = [], []
    for held in plan.writes:
        left = taken.left.get(held.name)
        given = [call[held.name] for call in calls if held.name in call]
        if left is None or not given:
            reasons.append(f"{held.name} was not seen")
            continue
        try:
            found.append(_BufferJudge(nodes, held, left).of(given))
        except (NotComputable, RuntimeError, ValueError) as error:
            reasons.append(str(error).splitlines()[0])
    return found, reasons


class _NodeReferences:
    """What a launch's nodes give of what it was called with: in float64 on the CPU, and in eager on its device."""

    def __init__(self, plan: LaunchPlan, taken: RecordedLaunch) -> None:
        """Raises Unknown or ValueError where a node cannot be computed."""
        self.plan, self.places = plan, taken.places
        self.inputs = [in_node_shape(node, taken.sources.get(node.name)) for node in placeholders(plan.nodes)]
        is_here = _on_cpu(self.inputs)
        self.own = evaluate_nodes(plan.nodes, self.inputs, exact=is_here)
        self.exact = self.own if is_here else evaluate_nodes(on_cpu(plan.nodes), _moved(self.inputs))
        self.steps = any(makes_steps(node) for node in plan.nodes.graph.nodes if node.op == "call_function")

    def both(self, held: NodeBuffer) -> ReferenceValue:
        """The value that a buffer should hold. Raises Unknown."""
        own, exact = self.own[held.node].own, self.exact[held.node].exact
        if not isinstance(own, Tensor):
            raise NotComputable("its node's value is not a tensor")
        return self._fitted(held, ReferenceValue(exact, own.cpu()))

    def otherwise(self, held: NodeBuffer, times: float) -> Iterator[Tensor]:
        """What eager may as well give, rounding elsewhere, and `times` as much."""
        for seed in range(SAMPLES if times == 1 else 2 * SAMPLES):
            with PerturbedRounding(seed, times):
                other = evaluate_nodes(self.plan.nodes, self.inputs, exact=False)[held.node].own.cpu()
            yield self._fitted(held, ReferenceValue(other, other)).own

    def _fitted(self, held: NodeBuffer, value: ReferenceValue) -> ReferenceValue:
        whole = self.places.get(held.whole)
        return fitted(value, self.places[held.name].form, whole.form if whole is not None else None)


class _BufferJudge:
    """Holds one buffer of a launch against its node."""

    def __init__(self, nodes: _NodeReferences, held: NodeBuffer, left: Tensor) -> None:
        self.nodes, self.held, self.left = nodes, held, left.cpu()
        self.reference = nodes.both(held)

    def of(self, given: list[Tensor]) -> IsolatedResult:
        """What was found of the buffer in these calls; of equal ones it is found once."""
        verdicts: list[BufferVerdict] = []
        known: list[Tensor] = []
        for value in (*(each.cpu() for each in given), self.left):
            like = next((at for at, other in enumerate(known) if same(value, other)), None)
            known.append(value)
            verdicts.append(self._verdict(value) if like is None else verdicts[like])
        varies = not all(same(each, known[0]) for each in known[:-1])
        leftover = varies and all(same(each, known[at % 2]) for at, each in enumerate(known[:-1]))
        return IsolatedResult(
            self.held, self.reference, tuple(verdicts[:-1]), verdicts[-1], varies and not leftover, leftover
        )

    def _verdict(self, value: Tensor) -> BufferVerdict:
        others = partial(self.nodes.otherwise, self.held)
        return judge_launch(value, self.reference, others, k=self.nodes.plan.watch.k, steps=self.nodes.steps)


def evaluate_nodes(gm: GraphModule, inputs: list[object], *, exact: bool = True) -> dict[str, ReferenceValue]:
    """The values of all nodes, from these of the placeholders, which are not written to. Raises Unknown."""
    changed = {node for each in gm.graph.nodes if changes_more(each) for node in changed_by(each)}
    values: dict[Node, ReferenceValue] = {}
    remaining = iter(inputs)
    with torch.no_grad():
        for node in gm.graph.nodes:
            if node.op == "output":
                continue
            value = ReferenceValue(AS_OWN, next(remaining)) if node.op == "placeholder" else None
            value = value or computed(gm, node, values, exact=exact)
            values[node] = value.apart() if node in changed and value.held is AS_OWN else value
    return {node.name: value for node, value in values.items()}


def placeholders(gm: GraphModule) -> list[Node]:
    """The graph's inputs."""
    return [node for node in gm.graph.nodes if node.op == "placeholder"]


def in_node_shape(node: Node, value: object) -> object:
    """A buffer's value in its node's shape, which may differ in dims of size 1. Raises ValueError."""
    meta = node.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(meta, torch.Tensor):
        if value is None:
            raise ValueError(f"the value of {node.name}, which it is computed from, could not be taken")
        return value
    shape = tuple(fx.concrete(size) for size in meta.shape)
    if tuple(value.shape) == shape or any(size is None for size in shape):
        return value
    if [size for size in value.shape if size != 1] != [size for size in shape if size != 1]:
        raise ValueError(f"{node.name} has shape {shape}, and the buffer that holds it {tuple(value.shape)}")
    return value.reshape([int(str(size)) for size in shape])


def _on_cpu(values: list[object]) -> bool:
    return all(value.device.type == "cpu" for value in values if isinstance(value, Tensor))


def _moved(values: list[object]) -> list[object]:
    return [value.cpu() if isinstance(value, Tensor) else value for value in values]


def on_cpu(gm: GraphModule) -> GraphModule:
    """The same nodes, for a CPU."""
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
            owner, _, name = str(node.target).rpartition(".")
            setattr(moved.get_submodule(owner), name, value.cpu())
    return moved
