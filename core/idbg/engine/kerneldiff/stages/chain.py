"""Run a compiled frame at each of its stages on the same inputs.

A stage is one graph (with the joint graph's arguments: the forward's inputs, then the outputs' gradients) or its parts,
a forward whose results a backward takes. Both return outputs, gradients, and what is written to inputs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from idbg.engine.compat import stages
from idbg.engine.kerneldiff.kernels.values import ReferenceValue
from idbg.engine.kerneldiff.kernels.verdict import judge_buffer, measured, rms
from idbg.engine.kerneldiff.stages.captured import FrameStages
from idbg.engine.kerneldiff.stages.evaluate import GraphResult, NodeHook, computed, one_by_one
from idbg.engine.kerneldiff.stages.fingerprints import SAME
from idbg.engine.kerneldiff.tensors.allowance import Size
from idbg.engine.kerneldiff.tensors.float64_device import to_float64
from idbg.schema.attribution import StageName
from idbg.schema.graphs import Part
from idbg.schema.remarks import Remark

Instead = Mapping[tuple[Part, str], object]
"""Values for nodes, by their part's and their own name."""

_TANGENT = "tangents"
_ULPS, _LARGEST = 4.0, 8.0  # of an op without float64: how many are no error, and times that of the worst element


class NotComparable(Exception):
    """A graph cannot run on the same inputs, or not be judged, because of what its `remark` says."""

    def __init__(self, remark: Remark) -> None:
        super().__init__(remark.kind)
        self.remark = remark


@dataclass(frozen=True)
class FrameInputs:
    """The arguments of the frame's code: the forward's, and the outputs' gradients by the names of the
    backward's arguments (none if the program ran no backward). `own_draws`: the graphs draw numbers by Inductor's own
    operators.
    """

    primals: tuple[object, ...]
    tangents: Mapping[str, object] = field(default_factory=dict)
    outputs: int = 0  # how many results are the forward's own
    own_draws: bool = False


@dataclass(frozen=True)
class Stage:
    """One stage: its graphs, by part ("" for a joint graph). `saved`: the backward's names of the forward's
    results, in order, if passes renamed the forward's nodes. `preserved`: the places of the arguments that freezing
    left.
    """

    name: StageName
    graphs: Mapping[Part, GraphModule]
    saved: tuple[str, ...] = ()
    preserved: tuple[int, ...] | None = None

    @cached_property
    def structure(self) -> list[object]:
        """A key that is equal for stages with equal computations."""
        return [(part, stages.structure(gm)) for part, gm in self.graphs.items()]

    def nodes(self) -> Iterator[tuple[Part, Node]]:
        """Every node, the forward's first."""
        for part, gm in self.graphs.items():
            for node in gm.graph.nodes:
                yield part, node

    def output_nodes(self, inputs: FrameInputs) -> list[tuple[Part, object]]:
        """The nodes of the results of `run`, in their order, without the inputs that are written to."""
        if len(self.graphs) == 1:
            part, gm = next(iter(self.graphs.items()))
            return [(part, value) for value in _wanted(stages.output_values(gm), inputs)]
        forward, backward = self.graphs["forward"], self.graphs["backward"]
        first = [("forward", value) for value in stages.output_values(forward)[: inputs.outputs]]
        return [*first, *(("backward", value) for value in stages.output_values(backward))]  # type: ignore[list-item]

    def run(
        self,
        inputs: FrameInputs,
        *,
        exact: bool = True,
        on_value: Callable[[Part, Node, object], None] | None = None,
        instead: Instead | None = None,
    ) -> GraphResult:
        """Raises NotComparable, and what an op raises."""

        if self.preserved is not None:
            inputs = replace(inputs, primals=tuple(inputs.primals[at] for at in self.preserved))

        run = partial(computed, exact=exact, own_draws=inputs.own_draws)

        def hook(part: Part) -> NodeHook | None:
            return None if on_value is None else lambda node, value: on_value(part, node, value)

        def patched(part: Part) -> dict[str, object]:
            return {name: value for (at, name), value in (instead or {}).items() if at == part}

        if len(self.graphs) == 1:
            part, gm = next(iter(self.graphs.items()))
            result = run(gm, _arguments(gm, inputs), on_value=hook(part), instead=patched(part))
            return replace(result, outputs=_wanted(result.outputs, inputs))
        forward, backward = self.graphs["forward"], self.graphs["backward"]
        one = run(forward, inputs.primals, on_value=hook("forward"), instead=patched("forward"))
        taken = backward_arguments(backward, dict(zip(self.saved_as(), one.outputs, strict=True)), inputs)
        one = replace(one, outputs=one.outputs[: inputs.outputs])  # what it saved is the backward's alone
        two = run(backward, one_by_one(taken), on_value=hook("backward"), instead=patched("backward"), seed=False)
        outputs = [*one.outputs, *two.outputs]
        return GraphResult(outputs, one.after | two.after, (*one.draws, *two.draws), {**one.narrowed, **two.narrowed})

    def saved_as(self) -> tuple[str, ...]:
        """The backward's names of the forward's results."""
        values = stages.output_values(self.graphs["forward"])
        names = list(self.saved if len(self.saved) == len(values) else map(node_name, values))
        # torch names a generator's state in the backward alone, in the forward's order
        states = [at for at, value in enumerate(values) if stages.is_rng_state(value)]
        inputs = [node.name for node in self.graphs["backward"].graph.nodes if node.op == "placeholder"]
        redrawn = [name for name in inputs if name.startswith(stages.RNG_STATE)] if states else []
        for at, name in zip(states, redrawn, strict=False):
            names[at] = name
        return tuple(_by_place(names, values, [name for name in inputs if not name.startswith(_TANGENT)]))

    def saved_node(self, name: str) -> str:
        """The forward's node that an argument of the backward is; "" where it is none."""
        returned = map(node_name, stages.output_values(self.graphs["forward"]))
        return dict(zip(self.saved_as(), returned, strict=True)).get(name, "")


def _by_place(names: list[str], values: Sequence[object], inputs: list[str]) -> list[str]:
    """The names, with those of saved tensors in the order of the backward's arguments: torch passes them by place."""
    first = len(names) - len(inputs)
    if first < 0 or sorted(names[first:]) != sorted(inputs):
        return names
    places = [at for at in range(first, len(names)) if _is_tensor(values[at])]
    tensors = {names[at] for at in places}
    ordered = list(names)
    for at, name in zip(places, (name for name in inputs if name in tensors), strict=True):
        ordered[at] = name
    return ordered


def _is_tensor(value: object) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), Tensor)


def backward_arguments(backward: GraphModule, saved: Mapping[str, object], inputs: FrameInputs) -> list[object]:
    """The backward's arguments, from what the forward saved and the outputs' gradients. Raises NotComparable."""
    known = {**saved, **inputs.tangents}
    names = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    if missing := [name for name in names if name not in known]:
        raise NotComparable(Remark("not saved", missing[0]))
    return [known[name] for name in names]


def node_name(value: object) -> str:
    """The node's name; "" of a constant that a graph returns."""
    return value.name if isinstance(value, Node) else ""


def _wanted(values: Sequence[object], inputs: FrameInputs) -> list[object]:
    """Without gradients where the program ran no backward."""
    return list(values if inputs.tangents else values[: inputs.outputs])


def _arguments(gm: GraphModule, inputs: FrameInputs) -> list[object]:
    names = stages.arguments_of(gm)
    values = list(inputs.primals)
    for node in names[len(values) :]:
        if node.name in inputs.tangents:
            values.append(inputs.tangents[node.name])
        elif inputs.tangents or not node.name.startswith(_TANGENT):
            break
        elif isinstance(value := node.meta.get("val"), Tensor):
            values.append(torch.zeros(tuple(map(int, value.shape)), dtype=value.dtype, device=value.device))
    if len(values) != len(names):
        raise NotComparable(Remark("other arguments", str(len(names)), str(len(inputs.primals))))
    return values


def inputs_of(frame: FrameStages, outputs: int) -> FrameInputs:
    """The arguments of the first call of the frame's code. Raises NotComparable if none was observed."""
    primals: tuple[object, ...] | None = None
    tangents: dict[str, object] = {}
    for place, watch in frame.watches.items():
        if watch.call_inputs is None:
            continue
        names = [node.name for node in frame.parts[place].graph.nodes if node.op == "placeholder"]
        if watch.graph.part == "backward":
            named = zip(names, watch.call_inputs, strict=True)
            tangents = {name: value for name, value in named if name.startswith(_TANGENT)}
        else:
            primals = tuple(watch.call_inputs)
    if primals is None:
        raise NotComparable(Remark("not called"))
    if frame.preserved is not None:
        values = dict(enumerate(frame.parameters)) | dict(zip(frame.preserved, primals, strict=True))
        primals = tuple(values[at] for at in sorted(values))
    return FrameInputs(primals, tangents, outputs, frame.own_draws)


def drop_saved(frame: FrameStages) -> None:
    """Drop what the frame's forward saved for its backward: each stage saves its own."""
    for place, watch in frame.watches.items():
        names = [node.name for node in frame.parts[place].graph.nodes if node.op == "placeholder"]
        if watch.graph.part == "backward" and len(names) == len(watch.call_inputs or ()):
            named = zip(names, watch.call_inputs or (), strict=True)
            watch.call_inputs = tuple(value if name.startswith(_TANGENT) else None for name, value in named)


@dataclass(frozen=True)
class StageDistance:
    """The distance of one stage's results from another's: the worst result's relative RMSE, its ratio to what
    is allowed (`excess`), and its place, or the argument that is written to. `first`: the first wrong result.
    """

    error: float = 0.0
    excess: float = 0.0
    at: int | str = 0
    first: int | str = 0


@dataclass(frozen=True)
class StageAllowance:
    """The allowed difference of a stage: a `share` of the rounding of the first stage in the program's own
    dtypes (`own`), as a decomposition may compute differently. `narrow`: an ulp of the dtype of an op that has
    no float64; 0 if all have.
    """

    own: GraphResult
    share: float = 1.0
    narrow: float = 0.0


def distance(reference: GraphResult, other: GraphResult, allowed: StageAllowance) -> StageDistance:
    """The distance of a stage's results from those of a stage before it."""
    own, worst = allowed.own, StageDistance()
    pairs: list[tuple[int | str, object, object, object]] = [
        (at, *three) for at, three in enumerate(zip(reference.outputs, other.outputs, own.outputs, strict=False))
    ]
    pairs += [(name, reference.after[name], other.after.get(name), own.after.get(name)) for name in reference.after]
    for at, exact, value, rounded in pairs:
        error, excess = _apart(exact, value, rounded, _ULPS * allowed.narrow)
        excess /= 1.0 if allowed.narrow else allowed.share
        # of those that are off the largest error; else what comes nearest to being off
        apart = StageDistance(error, excess, at, worst.first if worst.excess > 1 else at)
        worst = max(worst, apart, key=_rank)
    if len(reference.outputs) != len(other.outputs):
        return StageDistance(inf, inf, min(len(reference.outputs), len(other.outputs)))
    return worst


def _rank(apart: StageDistance) -> tuple[bool, float, float]:
    off = apart.excess > 1
    return off, apart.error if off else apart.excess, apart.error


def _apart(exact: object, value: object, own: object, least: float) -> tuple[float, float]:
    """The relative RMSE, and its ratio to what is allowed, at least `least`."""
    if not isinstance(exact, Tensor):
        same = type(exact) is type(value) and (exact is None or exact == value)
        return (0.0, 0.0) if same else (inf, inf)
    if not isinstance(value, Tensor) or value.shape != exact.shape:
        return inf, inf
    device = own.device if isinstance(own, Tensor) else value.device
    exact, value = to_float64(exact).to(device), to_float64(value).to(device)  # one of which may wait in host memory
    if (near := _near(exact, value)) is not None:
        return near, 0.0
    rounded = own if isinstance(own, Tensor) and own.shape == exact.shape else exact
    # what cancels is no smaller than what rounding leaves of it
    error = measured(exact, value, max(rms(exact), rms(rounded))).rmse
    if error <= SAME:
        return error, 0.0
    return error, judge_buffer(value, ReferenceValue(exact, rounded), [Size(least, _LARGEST * least)], k=1.0).excess


def values_apart(exact: object, value: object) -> float | None:
    """The relative RMSE of two nodes' values in float64, shapes aside; None where these are no tensors of one size."""
    if not isinstance(exact, Tensor) or not isinstance(value, Tensor) or value.numel() != exact.numel():
        return None
    exact, value = to_float64(exact), to_float64(value).reshape(exact.shape)
    value = value.to(exact.device)
    return measured(exact, value, rms(exact)).rmse


def _near(exact: Tensor, value: Tensor) -> float | None:
    """The relative RMSE of two values that are equal but for float64's rounding; None of others."""
    if not exact.numel() or not (exact.dtype.is_floating_point or exact.dtype.is_complex):
        return None
    size, apart = (float(torch.linalg.vector_norm(each)) for each in (exact, value - exact))
    return apart / size if 0 < size < inf and apart <= SAME * size else None
