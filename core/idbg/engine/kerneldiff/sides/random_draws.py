"""Detect that a compiled program draws other random numbers than eager, so that their outputs cannot be compared.

Dynamo may trace what eager skips (`if torch.compiler.is_compiling():`, a mask of all ones), and draw random numbers
there, or call another op that draws differently; from then on other elements are dropped. That is no miscompile.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves
from idbg.engine.kerneldiff.sides.run import PRIME, Call, Side, run_compiled, run_eager
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.compare import compare_tensors, relative_rmse
from idbg.engine.kerneldiff.tensors.float64_device import is_narrow
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.attribution import StageError
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.remarks import Remark

# Further apart than this in relative RMSE, eager and float64 may not have drawn the same numbers: it is looked into.
# Rounding in bfloat16 through a deep model was seen to come to 0.37 (mobilenet_v2 under autocast). Nothing is lost
# where other numbers are nearer than that: eager is then as far from float64 as the test is.
_OTHER_NUMBERS = 0.5
_BOTH = 2.0  # times what is allowed and eager's own error: of two runs whose random numbers are not eager's
_ULPS, _SHARE = 16.0, 0.01  # apart by less, or by less of what the test is off, a seed explains nothing
_BY_NUMBERS: Final = frozenset({"tolerance", "rmse", "maximum", "row", "column", "tile", "exact"})
NOTE: Final = Remark("other seed")
RESEEDED: Final = "eager, from another seed"


@contextmanager
def _other_seed() -> Iterator[None]:
    """Seed torch's generators with another seed; the run restores them."""
    torch.manual_seed(torch.initial_seed() ^ PRIME)
    yield


@dataclass(frozen=True)
class RandomDrawCheck:
    """Checks whether outputs fail only because the sides drew different random numbers.

    `compile` compiles nothing below Dynamo; `begin` is called with the name of each run; `rules` are the comparison's.
    """

    subject: Subject
    compile: Callable[[Call], Call]
    begin: Callable[[str], None]
    rules: ComparisonRules
    backward: bool

    def judge(self, report: DiffReport, reference: Side, test: Side) -> DiffReport:
        """The report, with no verdict where the sides drew other random numbers, all that failed depends on them, and
        the test equals Dynamo's graphs run with the same draws.
        """
        failed = [diff for diff in (*report.outputs, *report.gradients) if diff.failed]
        if report.verdict != "failed" or not failed or not generators_differ(reference, test):
            return report
        if not all(_BY_NUMBERS.issuperset(diff.failed_by) for diff in failed):
            return report
        self.begin("Dynamo")
        with uncaptured():
            dynamo = run_compiled("eager", self.subject, self.compile, backward=self.backward)
        if dynamo.values is None or generators_differ(dynamo, test):
            return report
        if not all(self._agree(diff, dynamo.leaves, test.leaves) for diff in failed):
            return report
        self.begin(RESEEDED)
        reseeded = run_eager(self.subject, RESEEDED, [_other_seed()], backward=self.backward).leaves
        if not all(_depends(diff.name, reference.leaves, test.leaves, reseeded) for diff in failed):
            return report
        return without_verdict_of_failed(report, Remark("other draws", report.test))

    def _agree(self, diff: TensorDiff, dynamo: Leaves, test: Leaves) -> bool:
        """Whether the test is as near to Dynamo's graphs as both may be to float64, or within the tolerances."""
        one, other = _tensor(dynamo.get(diff.name)), _tensor(test.get(diff.name))
        if one is None or other is None:
            return False
        if diff.baseline is None:
            return all(each.passed for each in compare_leaves({diff.name: one}, {diff.name: other}, None, self.rules))
        apart = compare_tensors(one, other, full=False)
        allowed = {each.by: each.allowed for each in diff.criteria}
        if apart.rmse is None or apart.max_abs is None or not {"rmse", "maximum"} <= allowed.keys():
            return False
        base = diff.baseline
        return (
            apart.rmse <= _BOTH * (allowed["rmse"] + base.reference_rmse)
            and apart.max_abs <= _BOTH * (allowed["maximum"] + base.reference_max_abs)
            and not set(apart.failed_by) - {"tolerance"}
        )


def generators_differ(one: Side, other: Side) -> bool:
    """Whether torch's generators, which begin in the same state, end in different ones."""
    if one.result.name != "eager" or one.values is None or other.values is None:
        return False
    ends = one.values.generators, other.values.generators
    return all(ends) and ends[0] != ends[1]


def with_proven_fault(found: DiffReport, judged: DiffReport) -> DiffReport:
    """The report `found`, with the verdict that was `judged` if a stage or launch is proven wrong with equal draws."""
    if not found.not_comparable or (found.first_wrong_stage is None and found.culprit is None):
        return found
    return replace(found, verdict=judged.verdict, not_comparable="", outputs=judged.outputs, gradients=judged.gradients)


def may_differ_in_draws(eager: Leaves, float64: Leaves) -> bool:
    """Whether eager and float64 are so far apart that they may have drawn different numbers."""
    both = [(value, float64.get(name)) for name, value in eager.items() if is_narrow(value)]
    return any(
        relative_rmse(true, found) > _OTHER_NUMBERS
        for found, true in both
        if isinstance(found, Tensor) and isinstance(true, Tensor) and found.shape == true.shape
    )


def _depends(name: str, eager: Leaves, test: Leaves, again: Leaves) -> bool:
    """Whether eager changes with the seed, by no small share of what the test is off."""
    one, two, other = (_tensor(side.get(name)) for side in (eager, test, again))
    if one is None or two is None or other is None or not one.shape == two.shape == other.shape:
        return False
    if not one.is_floating_point():
        return not compare_tensors(one, other, full=False).passed
    least = max(_ULPS * torch.finfo(one.dtype).eps, _SHARE * relative_rmse(one, two))
    return relative_rmse(one, other) > least


def _tensor(value: object) -> Tensor | None:
    return torch.tensor(value) if isinstance(value, float) else value if isinstance(value, Tensor) else None


def without_verdict_of_failed(report: DiffReport, why: Remark, note: Remark = NOTE) -> DiffReport:
    """The report with no verdict on what failed, for this reason."""
    outputs, gradients = _without_verdict(report.outputs, note), _without_verdict(report.gradients, note)
    return replace(report, verdict="waiting", not_comparable=why, outputs=outputs, gradients=gradients)


def without_verdict_on_draws(report: DiffReport, reference: Side) -> DiffReport:
    """The same where eager draws random numbers, and the test draws its own."""
    if report.verdict != "failed" or reference.values is None or not reference.values.drew:
        return report
    return without_verdict_of_failed(report, Remark("own draws", report.test))


def differs_in_draws(report: DiffReport) -> bool:
    """Whether it has no verdict because the compiled program draws other random numbers than eager."""
    why = report.not_comparable
    return isinstance(why, Remark) and why.kind in ("other draws", "parted draws")


def with_wrong_draws(
    report: DiffReport, stages: tuple[StageError, ...], why: Remark, notes: Iterable[Remark]
) -> DiffReport:
    """The report, failed by what Inductor's own random operators compute, which these stages show."""
    wrong = TensorDiff(name="random operators", passed=False, failed_by=("draws",), note=why)
    outputs = (*report.outputs, wrong)
    return replace(report, verdict="failed", not_comparable="", outputs=outputs, stages=stages, notes=tuple(notes))


def _without_verdict(diffs: Iterable[TensorDiff], note: Remark) -> tuple[TensorDiff, ...]:
    """What failed keeps its figures and loses its verdict."""
    unknown = {"passed": False, "judged": False, "failed_by": (), "criteria": (), "baseline": None, "blocks": ()}
    return tuple(replace(diff, **unknown, note=note) if diff.failed else diff for diff in diffs)
