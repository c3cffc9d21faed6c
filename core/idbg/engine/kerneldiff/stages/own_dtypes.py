"""Find the stage and node that are off in what float64 does not show: they make NaN or an infinity, round by far more,
or return a result in other memory.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.fx import Node

from idbg.engine.kerneldiff.stages.chain import FrameInputs, Stage, distance
from idbg.engine.kerneldiff.stages.evaluate import GraphResult
from idbg.engine.kerneldiff.stages.first_bad import FirstBad, Key, StageValues, result_key
from idbg.engine.kerneldiff.stages.makers import StageTransition

OwnDtypes = Literal["", "nonfinite", "rounding", "alias"]
"""What to look for in the program's own dtypes."""

ROUNDS_MORE = 10.0  # times the rounding of Dynamo's graph: decompositions and fused ops stay below


def first_unlike(reference: GraphResult, other: GraphResult) -> int | str | None:
    """The first result, by its place or its argument's name, that is not finite where the reference is; None where all
    are.
    """
    pairs: list[tuple[int | str, object, object]] = [
        (at, *pair) for at, pair in enumerate(zip(reference.outputs, other.outputs, strict=False))
    ]
    pairs += [(name, held, other.after.get(name)) for name, held in reference.after.items()]
    return next((at for at, right, value in pairs if _is_lost(right, value)), None)


def _is_lost(right: object, value: object) -> bool:
    if not isinstance(right, Tensor) or not isinstance(value, Tensor) or right.shape != value.shape:
        return False
    if not (right.dtype.is_floating_point or right.dtype.is_complex):
        return False
    return bool((torch.isfinite(right) & ~torch.isfinite(value)).any())


@dataclass(frozen=True)
class OwnDtypeTransition(StageTransition):
    """A step that is off in the program's own dtypes alone; `right` is what the stage before computes in these."""

    def is_wrong(self, stage: Stage) -> bool:
        return first_unlike(self.right, stage.run(self.inputs, exact=False)) is not None


@dataclass(frozen=True)
class RoundingTransition(StageTransition):
    """A step that rounds by far more than what is above it; `right` is Dynamo's graph in float64."""

    def is_wrong(self, stage: Stage) -> bool:
        return distance(self.right, stage.run(self.inputs, exact=False), self.allowed).excess > ROUNDS_MORE


@dataclass(frozen=True)
class AliasTransition(StageTransition):
    """A step after which a result lies in an argument's memory, or no longer does; `right` is of the stage before."""

    def is_wrong(self, stage: Stage) -> bool:
        return first_moved(self.right, stage.run(self.inputs, exact=False), self.inputs) is not None


def first_moved(reference: GraphResult, other: GraphResult, inputs: FrameInputs) -> int | None:
    """The place of the first result that lies in the memory of another argument, or of none; None where all are as in
    the reference.
    """
    pairs = zip(reference.outputs, other.outputs, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if held_in(one, inputs) != held_in(two, inputs)), None)


def held_in(value: object, inputs: FrameInputs) -> int | None:
    """The place of the argument in whose memory the value lies; None where it is in none's."""
    if not isinstance(value, Tensor):
        return None
    memory = _memory(value)
    return next((at for at, each in enumerate(inputs.primals) if memory and _memory(each) == memory), None)


def _memory(value: object) -> int:
    is_plain = isinstance(value, Tensor) and value.layout == torch.strided
    return value.untyped_storage().data_ptr() if is_plain and isinstance(value, Tensor) else 0


def moved_result(above: Stage, below: Stage, inputs: FrameInputs, at: int) -> FirstBad:
    """The nodes that both stages return at this place."""
    (part, node), (above_part, before) = (stage.output_nodes(inputs)[at] for stage in (below, above))
    nodes = [each if isinstance(each, Node) else None for each in (node, before)]
    return FirstBad(nodes[0], part, nodes[1], above_part)


def first_nonfinite(above: Stage, below: Stage, inputs: FrameInputs, at: int | str) -> FirstBad:
    """The first node of `below`, upstream of this result, that makes NaN or an infinity of finite numbers."""
    right, wrong = (StageValues(stage, inputs, exact=False) for stage in (above, below))
    start = result_key(wrong, inputs, at)
    upstream = set(wrong.upstream(start)) if start is not None else set()
    for key in (key for key in wrong.nodes if key in upstream and _is_origin(wrong, key)):
        same = [each for each in right.nodes if right.op(each) == wrong.op(key) is not None or each == key]
        if any(_lost(right, each) for each in same):
            continue  # it is there above too
        last = same[-1] if same else None
        return FirstBad(wrong.nodes[key], key[0], right.nodes[last] if last else None, last[0] if last else "")
    return FirstBad(None, start[0] if start else "", None, "")


def _is_origin(values: StageValues, key: Key) -> bool:
    sources = list(values.sources(key))
    return bool(sources) and _lost(values, key) and not any(_lost(values, source) for source in sources)


def _lost(values: StageValues, key: Key) -> bool:
    made = values.prints.get(key)
    return made is not None and made.nonfinite > 0
