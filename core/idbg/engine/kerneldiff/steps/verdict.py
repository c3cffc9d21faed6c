"""Judge training steps: find the first step and tensor at which the test is too far from float64.

The rule is that of an output (`tensors/allowance.py`): the RMSE of each tensor may be `k` times the worst of the other
sides', plus rounding. The others are eager, float64 that began with weights changed by a rounding, and, if the test
exceeds these two, SAMPLES runs of eager with perturbed roundings. A training that is unstable by itself blames nobody:
float64 with changed weights is as far.

- Where float64 with changed weights is AMPLIFIED times as far as it began, the distance is one direction's, whatever
the size of a tensor: the ratio of two such distances scatters as that of two scalars, and as much is allowed. - A
tensor is not judged where the reference itself is further from float64 than FAR of its RMS, or infinite where float64
is not, or where float64's own values are above LARGE, whose squares no float32 holds. - A tensor that the test leaves
unchanged to the bit, though the reference changes it by more than both are wrong, is lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Final

import torch
from msgspec.structs import replace

from idbg.engine.kerneldiff.steps.training import Rows, TensorRow
from idbg.engine.kerneldiff.tensors.allowance import FAR, Allowance, is_rounding_alone
from idbg.engine.kerneldiff.tensors.compare import TensorDistance
from idbg.schema.steps import KINDS, Kind, StepDistance, Where

AMPLIFIED: Final = 10.0
LARGE: Final = sqrt(torch.finfo(torch.float32).max)
_FLOAT16_LARGE = 4096.0  # 16 of them are infinite
_JUDGED_BY: Final[tuple[Kind, ...]] = ("output", "parameter")
_SHOWN = 24  # tensors, whose distances are kept


@dataclass(frozen=True)
class StepJudge:
    """The sides' names. `samples` are further runs with perturbed roundings. `few`: the error is that of a few numbers
    that all elements share (an optimizer's factors).
    """

    test: str
    reference: str
    sensitivity: str
    k: float
    samples: tuple[str, ...] = ()
    few: bool = False

    def judged(self, step: int, rows: Rows, amplified: float | None) -> list[StepDistance]:
        """Every tensor after this step, but for those that are zero but for rounding."""
        few = self.few or (amplified or 0.0) > AMPLIFIED
        return [self._judged(step, name, row, few) for name, row in rows.items() if not self._is_zero(row)]

    def _is_zero(self, row: TensorRow) -> bool:
        reference = row.far.get(self.reference)
        return reference is not None and is_rounding_alone(reference.size, reference.rmse)

    def _judged(self, step: int, name: str, row: TensorRow, few: bool) -> StepDistance:
        test, reference, sensitivity = (row.far.get(side) for side in (self.test, self.reference, self.sensitivity))
        distance = StepDistance(
            step=step,
            tensor=name,
            kind=row.kind,
            test=test.relative if test else inf,
            reference=reference.relative if reference else None,
            sensitivity=sensitivity.relative if sensitivity else None,
        )
        others = [row.far[side] for side in (self.reference, self.sensitivity, *self.samples) if side in row.far]
        if reference is None or _not_comparable(others, row.dtype):
            return distance
        size = max(each.size for each in others)
        worst = max(each.rmse for each in others)
        wrong = test.rmse if test else size
        allowance = Allowance.of(row.dtype, self.k, row.kind in ("gradient", "moment"), len(others))
        rule = allowance.rmse(wrong, worst, size, 1 if few else max(1, row.count))
        unmoved = self.test in row.unmoved and self.reference not in row.unmoved and wrong > self.k * worst
        failed = rule.exceeded or unmoved or test is None or test.differing != 0
        allowed = rule.allowed / size if size else 0.0
        return replace(distance, allowed=allowed, failed=failed, unmoved=unmoved)


def _not_comparable(others: Sequence[TensorDistance], dtype: torch.dtype) -> bool:
    """Whether these sides are no measure of what is right."""
    large = _FLOAT16_LARGE if dtype == torch.float16 else LARGE
    return any(each.differing or each.rmse > FAR * each.size or each.size > large for each in others)


def amplification(rows: Rows, side: str, moved: float) -> float | None:
    """The distance of `side` from float64 over its initial distance, over all parameters; None if there are none."""
    trained = [(row.count, row.far[side]) for row in rows.values() if row.kind == "parameter" and side in row.far]
    errors = sum(count * far.rmse**2 for count, far in trained)
    sizes = sum(count * far.size**2 for count, far in trained)
    return sqrt(errors / sizes) / moved if sizes else None


def first(distances: Iterable[StepDistance]) -> tuple[StepDistance | None, Where, int]:
    """The first failure of a step in the order of its parts; the part of the step; how many others failed.

    The backward goes from the last layer to the first, so of gradients it is the last that failed.
    """
    distances = list(distances)
    failed = [each for each in distances if each.failed]
    if not failed:
        return None, "", 0
    kind = min((each.kind for each in failed), key=KINDS.index)
    of_kind = [each for each in failed if each.kind == kind]
    worst = of_kind[-1] if kind == "gradient" else max(of_kind, key=_share)
    return worst, _where(kind, distances), len(failed) - 1


def _where(kind: Kind, distances: Sequence[StepDistance]) -> Where:
    if kind in ("output", "buffer"):
        return "forward"
    if kind == "gradient":
        return "backward"
    looked_at = any(each.kind == "gradient" and each.allowed is not None for each in distances)
    return "optimizer" if looked_at else ""


def _share(distance: StepDistance) -> float:
    """What was measured over what is allowed; 0 if it is not judged."""
    if distance.allowed is None or distance.test == 0:
        return 0.0
    return distance.test / distance.allowed if distance.allowed else inf


def unjudged_from(steps: Sequence[Sequence[StepDistance]]) -> int | None:
    """The first step from which no output and no parameter is judged; None if there is none."""
    place = len(steps)
    while place and not any(each.allowed is not None for each in steps[place - 1] if each.kind in _JUDGED_BY):
        place -= 1
    return place + 1 if place < len(steps) else None


def shown_distances(steps: Sequence[Sequence[StepDistance]], parted: StepDistance | None) -> tuple[StepDistance, ...]:
    """Each step's distances of the tensors that came nearest to what is allowed, and of the first output."""
    shares: dict[str, float] = {}
    for each in (each for step in steps for each in step):
        shares[each.tensor] = max(shares.get(each.tensor, 0.0), _share(each), 1e-9 * min(each.test, 1.0))
    moved = [name for name, share in sorted(shares.items(), key=lambda one: -one[1]) if share > 0]
    output = [each.tensor for each in steps[0] if each.kind == "output"][:1] if steps else []
    names = {*([parted.tensor] if parted else []), *output, *moved[:_SHOWN]}
    return tuple(each for step in steps for each in step if each.tensor in names)
