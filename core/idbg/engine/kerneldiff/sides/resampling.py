"""What else could eager have given, had its ops rounded otherwise, and is the test as near to float64 as that?

Eager is one rounding of the program. Where a sum cancels (the gradient of a bias before a batch norm, the mean of what
was normalised) all that is left is rounding, and how large that is cannot be told from the tensor; of few elements,
eager may be right by luck. So what fails by a little too much is looked at again: the program runs in eager SAMPLES
times more, with the tensors that its ops take moved by as much as a rounding moves them.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.kerneldiff.float64.rounding import SAMPLES, PerturbedRounding
from idbg.engine.kerneldiff.sides.run import run_rounded
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.allowance import SMALL
from idbg.engine.kerneldiff.tensors.compare import compare_sides
from idbg.engine.kerneldiff.tensors.float64_device import on_float64_device
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.diff import TensorDiff

NOTE = "as near to float64 as eager is where its ops round otherwise"
# Times eager's own error, and no rounding explains it: plain sums of float32 were seen to be 90 times as far off as
# pairwise ones; narrower dtypes are added up in float32
FAR_ABOVE, NARROW_ABOVE = 100.0, 5.0
# Ulps of the values: noise above it is of something larger that has cancelled; of float32 what allowance.py allows
_CANCELLED, _NARROW_CANCELLED = 4.0, 16.0
# Times as far from eager as from each other, and this share of the values: then the samples are of another program
_COMMON, _LARGE = 100.0, 1e-2
_TF32: Final = "float32 may be computed in TF32 here ({setting} is tf32): its 10 bits of mantissa count as rounding"
_LITTLE = 0.25  # of the noise: what is nearer to float64 than that is not wrong
_TOO_MUCH: Final = frozenset({"rmse", "maximum", "row", "column", "tile", "tolerance"})
_ZEROS, _LEAST_ZEROS = 0.25, 4  # of the elements: fewer may cancel to nothing by luck


@dataclass(frozen=True)
class Samples:
    """What eager gives where its ops round otherwise; `tf32` are the settings by which some may compute in TF32."""

    runs: tuple[Leaves, ...]
    tf32: Collection[str] = ()

    def and_more(self, runs: Sequence[Leaves]) -> "Samples":
        """With other runs beside them."""
        return Samples((*self.runs, *runs), self.tf32)

    def notes(self) -> list[str]:
        """What a report says of them."""
        return [_TF32.format(setting=setting) for setting in sorted(self.tf32)]


def rounded_samples(subject: Subject, *, backward: bool, one_by_one: bool) -> Samples:
    """Eager with its ops rounding otherwise, SAMPLES times."""
    modes = [PerturbedRounding(seed, one_by_one=one_by_one) for seed in range(SAMPLES)]
    sides = [run_rounded(subject, each, backward=backward) for each in modes]
    return Samples(tuple({**(each.outputs or {}), **(each.gradients or {})} for each in sides), modes[0].tf32)


def is_doubtful(diff: TensorDiff) -> bool:
    """Whether it failed by the size of its errors alone."""
    return not diff.passed and diff.baseline is not None and _TOO_MUCH.issuperset(diff.failed_by)


def looked_at_again(
    diff: TensorDiff,
    sides: tuple[Leaves, Leaves, Leaves],
    samples: Samples,
    before: Tensor | None,
    k: float,
    *,
    few: bool = False,
) -> TensorDiff:
    """Passes what rounding explains; `sides` are eager, test and float64, `before` what a state's value was. `few`: the
    error is that of a few numbers that all elements share (an optimizer's factors), and scatters as theirs does.
    """
    leaves = [side.get(diff.name) for side in (*sides, *samples.runs)]
    tensors = [on_float64_device(each) for each in leaves if isinstance(each, Tensor)]
    before = before if before is None else on_float64_device(before)
    if len(tensors) < 4 or len(tensors) < len(leaves) or len({each.shape for each in tensors}) > 1:
        return diff
    eager, test, float64, *others = tensors
    if any(each.dtype != test.dtype for each in (eager, *others)) or not test.is_floating_point():
        return diff
    if not _of_one_program(eager, others):
        return diff
    worst = _worst(eager, float64, others)
    if not_computed(worst, test, float64, (eager, *others), before):
        return diff
    own_runs = len(samples.runs) + 1
    k *= (1 + SMALL / own_runs) ** 2 if few else 1.0
    again = compare_sides(worst, test, float64, k=k, gradient=diff.name.startswith("grad("), samples=own_runs)
    if not again.passed or not (few or _is_explained(again, diff, float64, samples)):
        return diff
    own = tuple(replace(each, why_not=NOTE) for each in diff.criteria if each.exceeded)
    return replace(diff, passed=True, failed_by=(), criteria=(*again.criteria, *own), note=NOTE)


def not_computed(worst: Tensor, test: Tensor, float64: Tensor, own: Sequence[Tensor], before: Tensor | None) -> bool:
    """Whether the test is zero, or what it was before, where eager is not however it rounds, and that is no better."""
    noise = (worst.double() - float64).abs()
    for blank in (torch.zeros_like(test), before):
        if blank is None or blank.shape != test.shape:
            continue
        blank = blank.to(test.dtype)
        lost = (test == blank) & ((float64 - blank.double()).abs() > _LITTLE * noise)
        for each in own:
            lost &= each != blank
        count = int(lost.sum())
        if count and (count == test.numel() or count >= max(_LEAST_ZEROS, _ZEROS * test.numel())):
            return True
    return False


def _of_one_program(eager: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether the samples scatter around eager. What is large, and common to them all but eager, no rounding makes."""
    wide, *runs = (each.double() for each in (eager, *others))
    away = max(float((run - wide).norm()) for run in runs)
    spread = max(float((one - other).norm()) for one in runs for other in runs)
    return not (away > _COMMON * spread and away > _LARGE * float(wide.norm()))


def _worst(eager: Tensor, float64: Tensor, others: Sequence[Tensor]) -> Tensor:
    """Of each element the value of that run that has it furthest from float64."""
    worst, error = eager, (eager.double() - float64).abs()
    for other in others:
        further = (other.double() - float64).abs()
        worst = torch.where(further > error, other, worst)
        error = torch.maximum(error, further)
    return worst


def _is_explained(again: TensorDiff, diff: TensorDiff, float64: Tensor, samples: Samples) -> bool:
    """Not where eager's error says enough by itself, nor where the test's is far above it: which says nothing where
    eager's kernels happen to compute in float32 what others compute in TF32.
    """
    base, noise = diff.baseline, again.baseline
    assert base is not None and noise is not None and diff.test is not None
    count, eps = max(1, diff.elements), torch.finfo(getattr(torch, diff.test.dtype)).eps
    # An eager that sums in double is more exact than any rounding of its inputs: within those the test is right too
    limit = (
        NARROW_ABOVE * base.reference_rmse if eps > 1e-6 else max(noise.reference_rmse, FAR_ABOVE * base.reference_rmse)
    )
    if not samples.tf32 and base.rmse > limit * (1 + SMALL / count) ** 2:
        return False
    magnitude = float(torch.linalg.vector_norm(float64)) / math.sqrt(count)
    return noise.reference_rmse > (_NARROW_CANCELLED if eps > 1e-6 else _CANCELLED) * eps * magnitude
