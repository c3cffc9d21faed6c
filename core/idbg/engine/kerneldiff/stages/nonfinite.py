"""Find the stage and node that make NaN or an infinity in the program's own dtypes, where float64 makes none."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from idbg.engine.kerneldiff.stages.chain import Inputs, Stage
from idbg.engine.kerneldiff.stages.evaluate import Computed
from idbg.engine.kerneldiff.stages.first_bad import FirstBad, Key, Values, result_key
from idbg.engine.kerneldiff.stages.makers import Step


def first_unlike(reference: Computed, value: Computed) -> int | str | None:
    """The first result, by its place or its argument's name, that is not finite where the reference is; None where all
    are.
    """
    pairs: list[tuple[int | str, object, object]] = [
        (at, *pair) for at, pair in enumerate(zip(reference.outputs, value.outputs, strict=False))
    ]
    pairs += [(name, held, value.after.get(name)) for name, held in reference.after.items()]
    return next((at for at, right, given in pairs if _is_lost(right, given)), None)


def _is_lost(right: object, given: object) -> bool:
    if not isinstance(right, Tensor) or not isinstance(given, Tensor) or right.shape != given.shape:
        return False
    if not (right.dtype.is_floating_point or right.dtype.is_complex):
        return False
    return bool((torch.isfinite(right) & ~torch.isfinite(given)).any())


@dataclass(frozen=True)
class OwnStep(Step):
    """A step that is off in the program's own dtypes alone; `right` is what the stage before computes in these."""

    def is_wrong(self, stage: Stage) -> bool:
        return first_unlike(self.right, stage.run(self.inputs, exact=False)) is not None


def first_nonfinite(above: Stage, below: Stage, inputs: Inputs, at: int | str) -> FirstBad:
    """The first node of `below` on the way to this result that makes NaN or an infinity of finite numbers, and what it
    stands for.
    """
    right, wrong = (Values(stage, inputs, exact=False) for stage in (above, below))
    start = result_key(wrong, inputs, at)
    on_the_way = set(_before(wrong, start)) if start is not None else set()
    born = (key for key in wrong.nodes if key in on_the_way and _is_born(wrong, key))
    for key in born:
        same = [each for each in right.nodes if right.op(each) == wrong.op(key) is not None or each == key]
        if any(_lost(right, each) for each in same):
            continue  # it is there above too
        last = same[-1] if same else None
        return FirstBad(wrong.nodes[key], key[0], right.nodes[last] if last else None, last[0] if last else "")
    return FirstBad(None, start[0] if start else "", None, "")


def _before(values: Values, start: Key) -> Iterator[Key]:
    seen: set[Key] = set()
    waiting = [start]
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            yield key
            waiting += values.sources(key)


def _is_born(values: Values, key: Key) -> bool:
    sources = list(values.sources(key))
    return bool(sources) and _lost(values, key) and not any(_lost(values, source) for source in sources)


def _lost(values: Values, key: Key) -> bool:
    made = values.prints.get(key)
    return made is not None and made.nonfinite > 0
