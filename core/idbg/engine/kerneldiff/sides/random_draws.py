"""Does the compiled program draw other random numbers than eager? Then its outputs cannot be compared with eager's.

Dynamo may trace what eager skips (`if torch.compiler.is_compiling():`, a mask of all ones), and draw there, or lead to
another op that draws in another way; from then on other elements are dropped. That is no miscompile.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.kerneldiff.float64.mode import is_narrow
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves
from idbg.engine.kerneldiff.sides.run import RESEEDED, Call, Side, run_compiled, run_reseeded
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.compare import compare_tensors, relative_rmse
from idbg.engine.kerneldiff.tensors.tree import Leaves
from idbg.schema.diff import DiffReport, TensorDiff

# Further apart than this in relative RMSE, eager and float64 may not have drawn the same numbers: it is looked into.
# Rounding in bfloat16 through a deep model was seen to come to 0.37 (mobilenet_v2 under autocast). Nothing is lost
# where other numbers are nearer than that: eager is then as far from float64 as the test is.
_OTHER_NUMBERS = 0.5
_BOTH = 2.0  # times what is allowed and eager's own error: of two runs whose random numbers are not eager's
_ULPS, _SHARE = 16.0, 0.01  # apart by less, or by less of what the test is off, a seed explains nothing
_BY_NUMBERS: Final = frozenset({"tolerance", "rmse", "maximum", "row", "column", "tile", "exact"})
_WHY: Final = (
    "the compiled program draws other random numbers than eager (Dynamo's graphs, run with nothing compiled, "
    "draw them too, and give what {test} gives; eager gives something else from another seed)"
)
NOTE: Final = "not comparable: of other random numbers than eager's"


@dataclass(frozen=True)
class Reruns:
    """The program run again; `compile` compiles nothing below Dynamo, `begin` is told of each run."""

    subject: Subject
    compile: Callable[[Call], Call]
    backward: bool
    begin: Callable[[str], None]

    def dynamo(self) -> Side:
        """Dynamo's graphs as they are."""
        self.begin("Dynamo")
        with uncaptured():
            return run_compiled("eager", self.subject, self.compile, backward=self.backward)

    def reseeded(self) -> Side:
        """Eager from another seed."""
        self.begin(RESEEDED)
        return run_reseeded(self.subject, backward=self.backward)


@dataclass(frozen=True)
class RandomDrawCheck:
    """Whether what failed has failed by its random numbers alone. `how` are the comparison's rules."""

    reference: Side
    test: Side
    rerun: Reruns
    how: ComparisonRules

    def unjudged(self, report: DiffReport) -> DiffReport:
        """The report with no verdict where the sides drew other random numbers, all that failed depends on them, and
        the test gives what Dynamo's graphs give of the same draws; else as it is.
        """
        diffs = (*report.outputs, *report.gradients)
        failed = [diff for diff in diffs if diff.failed]
        if report.verdict != "failed" or not failed or not self._ended_apart():
            return report
        if not all(_BY_NUMBERS.issuperset(diff.failed_by) for diff in failed):
            return report
        dynamo = self.rerun.dynamo()
        if dynamo.given is None or self.test.given is None or dynamo.given.generators != self.test.given.generators:
            return report
        if not all(self._agree(diff, _leaves(dynamo), _leaves(self.test)) for diff in failed):
            return report
        again = self.rerun.reseeded()
        if not all(_depends(diff.name, _leaves(self.reference), _leaves(self.test), _leaves(again)) for diff in failed):
            return report
        return replace(
            report,
            verdict="waiting",
            not_comparable=_WHY.format(test=report.test),
            outputs=_without_verdict(report.outputs),
            gradients=_without_verdict(report.gradients),
        )

    def _ended_apart(self) -> bool:
        """Whether the generators, which began alike, ended elsewhere on the test's side."""
        if self.reference.result.name != "eager" or self.reference.given is None or self.test.given is None:
            return False
        ends = self.reference.given.generators, self.test.given.generators
        return all(ends) and ends[0] != ends[1]

    def _agree(self, diff: TensorDiff, dynamo: Leaves, test: Leaves) -> bool:
        """Whether the test is as near to Dynamo's graphs as both may be to float64; by the tolerances, where those
        decide.
        """
        one, other = _tensor(dynamo.get(diff.name)), _tensor(test.get(diff.name))
        if one is None or other is None:
            return False
        if diff.baseline is None:
            return all(each.passed for each in compare_leaves({diff.name: one}, {diff.name: other}, None, self.how))
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


def with_proven_fault(found: DiffReport, judged: DiffReport) -> DiffReport:
    """What was found where nothing could be judged: a stage or a launch that is proven wrong, of equal draws, makes the
    comparison a failed one all the same, as it was `judged`.
    """
    if not found.not_comparable or (found.first_wrong_stage is None and found.culprit is None):
        return found
    return replace(found, verdict=judged.verdict, not_comparable="", outputs=judged.outputs, gradients=judged.gradients)


def may_differ_in_draws(eager: Leaves, float64: Leaves) -> bool:
    """Whether eager and float64 are so far apart that they may not have drawn the same numbers."""
    both = [(value, float64.get(name)) for name, value in eager.items() if is_narrow(value)]
    return any(
        relative_rmse(true, given) > _OTHER_NUMBERS
        for given, true in both
        if isinstance(given, Tensor) and isinstance(true, Tensor) and given.shape == true.shape
    )


def _depends(name: str, eager: Leaves, test: Leaves, again: Leaves) -> bool:
    """Whether eager gives something else from another seed, and that not by far less than the test does."""
    one, two, other = (_tensor(side.get(name)) for side in (eager, test, again))
    if one is None or two is None or other is None or not one.shape == two.shape == other.shape:
        return False
    if not one.is_floating_point():
        return not compare_tensors(one, other, full=False).passed
    least = max(_ULPS * torch.finfo(one.dtype).eps, _SHARE * relative_rmse(one, two))
    return relative_rmse(one, other) > least


def _leaves(side: Side) -> Leaves:
    return {**(side.outputs or {}), **(side.gradients or {})}


def _tensor(value: object) -> Tensor | None:
    return torch.tensor(value) if isinstance(value, float) else value if isinstance(value, Tensor) else None


def _without_verdict(diffs: Iterable[TensorDiff]) -> tuple[TensorDiff, ...]:
    """What failed, with its figures and no verdict."""
    unknown = {"passed": False, "judged": False, "failed_by": (), "criteria": (), "baseline": None, "blocks": ()}
    return tuple(replace(diff, **unknown, note=NOTE) if diff.failed else diff for diff in diffs)
