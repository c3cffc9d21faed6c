"""Judge failed tensors again by more runs of eager: is the error rounding, or does eager itself not repeat?

Eager is one rounding of the program. Where a sum cancels (the gradient of a bias before a batch norm, the mean of
normalised values) only rounding is left, and its size cannot be computed from the tensor; a tensor of few elements may
be exact in eager by luck. So eager runs SAMPLES times more with perturbed roundings, and each element's worst error
takes the place of eager's. docs/numerics.md has the bounds. An output that differs between two runs of eager, as it
depends on a clock or an address, cannot be compared: eager runs twice where that could change the verdict.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.float64.rounding import SAMPLES, PerturbedRounding
from idbg.engine.kerneldiff.sides.run import Call, Side, run_eager, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.allowance import SMALL
from idbg.engine.kerneldiff.tensors.compare import (
    compare_sides,
    compare_tensors,
    relative_rmse,
    with_note,
    without_relative,
)
from idbg.engine.kerneldiff.tensors.float64_device import float64_device
from idbg.engine.kerneldiff.tensors.tree import AFTER, Leaves
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.remarks import Remark

NOTE = Remark("rounded")
ROUNDED = "eager, rounded differently"
TRACED = "traced graphs, rounded differently"
# Times eager's own error, and no rounding explains it: plain sums of float32 were seen to be 90 times as far off as
# pairwise ones; narrower dtypes are added up in float32
FAR_ABOVE, NARROW_ABOVE = 100.0, 5.0
# Ulps of the values: noise above it is of something larger that has cancelled; of float32 what allowance.py allows
_CANCELLED, _NARROW_CANCELLED = 4.0, 16.0
# Times as far from eager as from each other, and this share of the values: then the samples are of another program
_COMMON, _LARGE = 100.0, 1e-2
_LITTLE = 0.25  # of the noise: what is nearer to float64 than that is not wrong
_TOO_MUCH: Final = frozenset({"rmse", "maximum", "row", "column", "tile", "tolerance"})
BY_EAGER: Final = Remark("by eager's rounding")
BY_NOTHING: Final = Remark("rounding unknown")
_ZEROS, _LEAST_ZEROS = 0.25, 4  # of the elements: fewer may cancel to nothing by luck
_ULPS = 16.0  # by which two runs of eager on the CPU may differ: threads add in any order
# A number below 1 that is moved by half an ulp stays as it is half of the time, and an optimizer's factor is one
# number: so it is moved further, and more often, so that each of a hundred parameters' factors is moved in some run
_TIMES, _OFTEN = 4.0, 2 * SAMPLES


@dataclass(frozen=True)
class Samples:
    """Leaves of further runs of eager. `tf32`: some ops may compute in TF32. `few`: the error is that of a few numbers
    that all elements share (an optimizer's factors), and scatters as theirs does.
    """

    runs: tuple[Leaves, ...]
    tf32: bool = False
    few: bool = False


@dataclass(frozen=True)
class Resampling:
    """The judge of what failed. `begin` is called with the name of each run, `notes` takes notes for the report,
    `agree` with whether a run is needed.
    """

    subject: Subject
    k: float
    begin: Callable[[str], None]
    notes: list[Remark] = field(default_factory=list)
    backward: bool = False
    agree: Callable[[bool], bool] = bool

    def judge_rounding(
        self, diffs: tuple[TensorDiff, ...], eager: Leaves, test: Leaves, float64: Leaves
    ) -> tuple[TensorDiff, ...]:
        """The diffs, where those pass whose error is rounding. Each kind of samples is run only if something fails."""
        samples = self._samples(eager)
        while self.agree(any(map(may_be_rounding, diffs))) and (kind := next(samples, None)) is not None:
            diffs = tuple(self._judge(diff, (eager, test, float64), kind) for diff in diffs)
        return diffs

    def judge_by_eager(
        self, diffs: tuple[TensorDiff, ...], eager: Leaves, test: Leaves, decided: Container[str]
    ) -> tuple[TensorDiff, ...]:
        """The diffs, where what is beyond the tolerances passes if it is no further from eager than rounding moves
        eager, fails if it is, and has no verdict if that cannot be measured. `decided`: tensors with tolerances of the
        user's, which stand.
        """
        beyond = {diff.name: diff for diff in diffs if diff.failed_by == ("tolerance",) and diff.name not in decided}
        samples, judged = self._samples(eager), dict(beyond)
        while any(not each.passed for each in judged.values()) and (kind := next(samples, None)) is not None:
            judged |= {
                name: judge_by_eager(beyond[name], (eager, test), kind, self._before(name), self.k)
                for name, each in judged.items()
                if not each.passed
            }
        return tuple(judged.get(diff.name, diff) for diff in diffs)

    def judge_nondeterminism(self, report: DiffReport, reference: Side) -> DiffReport:
        """The report, where outputs are not comparable that differ between two runs of eager."""
        diffs = (*report.outputs, *report.gradients)
        if reference.values is None or reference.result.name != "eager" or not is_worth_repeating(diffs):
            return report
        self.begin("eager again")
        again = run_eager(self.subject, backward=self.backward)
        if again.values is None:
            return report
        first, second = reference.leaves, again.leaves
        outputs, gradients = (
            tuple(judge_repeated(diff, first.get(diff.name), second.get(diff.name)) for diff in judged)
            for judged in (report.outputs, report.gradients)
        )
        if (*outputs, *gradients) == diffs:
            return report
        return replace(report, verdict="failed", outputs=outputs, gradients=gradients)

    def _judge(self, diff: TensorDiff, sides: tuple[Leaves, Leaves, Leaves], samples: Samples) -> TensorDiff:
        if not may_be_rounding(diff):
            return diff
        return judge_samples(diff, sides, samples, self._before(diff.name), self.k)

    def _before(self, name: str) -> Tensor | None:
        """The initial value of a tensor that the program writes to."""
        return self.subject.initial(name.removesuffix(AFTER)) if name.endswith(AFTER) else None

    def _samples(self, eager: Leaves) -> Iterator[Samples]:
        rounded, tf32 = self._rounded.runs, self._rounded.tf32
        yield self._rounded
        # Inductor adds one number after another: of equal numbers (the gradient of a mean) roundings do not cancel
        yield Samples((*rounded, *self._summed), tf32)
        if self.subject.optimizers:
            yield Samples((*rounded, *self._traced_samples(eager)), tf32, few=True)

    @cached_property
    def _rounded(self) -> Samples:
        modes = [PerturbedRounding(seed) for seed in range(SAMPLES)]
        runs = self._run(modes)
        remarks = (Remark("tf32", setting) for setting in sorted(modes[0].tf32))
        self.notes.extend(remark for remark in remarks if remark not in self.notes)
        return Samples(runs, bool(modes[0].tf32))

    @cached_property
    def _summed(self) -> tuple[Leaves, ...]:
        return self._run([PerturbedRounding(seed, one_by_one=True) for seed in range(SAMPLES)])

    def _run(self, modes: Iterable[PerturbedRounding]) -> tuple[Leaves, ...]:
        self.begin(ROUNDED)
        runs = (run_eager(self.subject, ROUNDED, [mode], backward=self.backward).leaves for mode in modes)
        return tuple({name: _on_cpu(value) for name, value in run.items()} for run in runs)

    def _traced_samples(self, eager: Leaves) -> list[Leaves]:
        """Eager's values, moved as rounding moves those of the traced graphs; empty where these cannot run."""
        own, *others = self._traced or ({},)
        return [
            {name: _moved(value, own.get(name), other.get(name)) for name, value in eager.items()} for other in others
        ]

    @cached_property
    def _traced(self) -> tuple[Leaves, ...]:
        self.begin(TRACED)
        torch.compiler.reset()
        traced = TracedProgram()
        model = traced.compiled(self.subject.model)

        def around(stack: ExitStack) -> Call:
            stack.enter_context(comparing.random_as_eager())
            stack.enter_context(uncaptured())
            return model

        sides: list[Side] = []
        for rounding in traced_roundings():
            traced.rounding = rounding
            sides.append(run_side(TRACED, self.subject, around, self.backward))
        return tuple(side.leaves for side in sides) if all(side.values is not None for side in sides) else ()


class TracedProgram:
    """Runs Dynamo's graphs op by op, with `rounding`.

    An optimizer computes its factors with Python's numbers in eager, and with float32 tensors in traced graphs: of
    Adam's 1 - beta2**step half of the digits are then rounding, which no rounding of eager's ops shows. The traced
    graphs are compared with themselves, rounded differently: a wrong trace explains nothing.
    """

    def __init__(self) -> None:
        self.rounding: PerturbedRounding | None = None

    def compiled(self, model: Call) -> Call:
        """The model as Dynamo traces it."""
        compiled: Call = torch.compile(model, backend=self._op_by_op)
        return compiled

    def _op_by_op(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        def run(*args: object) -> object:
            with self.rounding if self.rounding is not None else nullcontext():
                return graph(*args)

        return run


def traced_roundings() -> list[PerturbedRounding | None]:
    """The roundings that the traced graphs run with: unchanged, then as many others as show how far they move."""
    return [None, *(PerturbedRounding(seed, _TIMES) for seed in range(_OFTEN))]


def _moved(value: object, own: object, other: object) -> object:
    """`value`, moved by the difference from `own` to `other`."""
    tensors = [each for each in (value, own, other) if isinstance(each, Tensor) and each.is_floating_point()]
    if len(tensors) < 3 or len({each.shape for each in tensors}) > 1:
        return value
    base, one, another = (each.to(tensors[0].device) for each in tensors)
    return (base.double() + (another.double() - one.double())).to(base.dtype)


def may_be_rounding(diff: TensorDiff) -> bool:
    """Whether it failed by the size of its error alone."""
    return not diff.passed and diff.baseline is not None and _TOO_MUCH.issuperset(diff.failed_by)


def judge_samples(
    diff: TensorDiff, sides: tuple[Leaves, Leaves, Leaves], samples: Samples, before: Tensor | None, k: float
) -> TensorDiff:
    """The diff, which passes if rounding explains its error. `sides` are eager, test and float64; `before` is a state's
    initial value.
    """
    alike, float64 = _alike(diff.name, (*sides[:2], *samples.runs)), sides[2].get(diff.name)
    if len(alike) < 3 or not isinstance(float64, Tensor) or float64.shape != alike[0].shape:
        return diff
    eager, test, *others = alike
    float64 = float64.to(eager.device)
    if not _of_one_program(eager, others):
        return diff
    worst = _worst(eager, float64, others)
    if not_computed(worst, test, float64, (eager, *others), before):
        return diff
    count = len(samples.runs) + 1
    k *= (1 + SMALL / count) ** 2 if samples.few else 1.0
    again = compare_sides(worst, test, float64, k=k, gradient=diff.name.startswith("grad("), samples=count)
    if not again.passed or not (samples.few or _is_explained(again, diff, float64, tf32=samples.tf32)):
        return diff
    own = tuple(replace(each, why_not=NOTE) for each in diff.criteria if each.exceeded)
    if again.relative_rmse is None:  # zero but for rounding, which eager may not have by luck
        diff = replace(without_relative(diff), note=again.note)
    return with_note(replace(diff, passed=True, failed_by=(), criteria=(*again.criteria, *own)), NOTE)


def judge_by_eager(
    diff: TensorDiff, sides: tuple[Leaves, Leaves], samples: Samples, before: Tensor | None, k: float
) -> TensorDiff:
    """The verdict on eager and test by how far rounding moves eager, in the place of the tolerances; none where that
    cannot be measured. `before` is a state's initial value.
    """
    alike = _alike(diff.name, (*sides, *samples.runs))
    if alike and alike[0].dtype == torch.float64:
        return diff
    if len(alike) < 3 or not _of_one_program(alike[0], alike[2:]):
        return replace(diff, judged=False, failed_by=(), criteria=(), note=BY_NOTHING)
    eager, test, *others = alike
    exact = eager.double()
    worst = _worst(eager, exact, others)
    again = compare_sides(worst, test, exact, k=k, gradient=diff.name.startswith("grad("), samples=len(others) + 1)
    if again.passed and not_computed(worst, test, exact, (eager, *others), before):
        return diff
    deciding = tuple(each for each in again.criteria if not each.why_not)
    idle = tuple(replace(each, why_not=BY_EAGER) for each in diff.criteria)
    return replace(
        diff,
        passed=again.passed,
        failed_by=again.failed_by,
        criteria=(*deciding, *idle),
        baseline=again.baseline,
        blocks=again.blocks,
    )


def _alike(name: str, sides: Sequence[Leaves]) -> list[Tensor]:
    """The floating tensor of this name on each side, on one device; empty where a side has none, or another kind."""
    tensors = [value for side in sides if isinstance(value := side.get(name), Tensor)]
    kinds = {(value.shape, value.dtype) for value in tensors}
    if len(tensors) < len(sides) or len(kinds) > 1 or not tensors[0].is_floating_point():
        return []
    device = float64_device(tensors[0].device)
    return [value.to(device) for value in tensors]


def _on_cpu(value: object) -> object:
    """The value, in host memory: a device that is nearly full has no room for runs that wait to be judged."""
    return value.cpu() if type(value) is Tensor else value


def not_computed(worst: Tensor, test: Tensor, float64: Tensor, own: Sequence[Tensor], before: Tensor | None) -> bool:
    """Whether the test is zero, or the state's initial value, where no rounding of eager is, and that is no better."""
    noise = (worst.double() - float64).abs()
    for blank in (torch.zeros_like(test), before):
        if blank is None or blank.shape != test.shape:
            continue
        blank = blank.to(test)
        lost = (test == blank) & ((float64 - blank.double()).abs() > _LITTLE * noise)
        for each in own:
            lost &= each != blank
        count = int(lost.sum())
        if count and (count == test.numel() or count >= max(_LEAST_ZEROS, _ZEROS * test.numel())):
            return True
    return False


def _of_one_program(eager: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether the samples scatter around eager: rounding moves no run far from eager that moves none from another."""
    wide, *runs = (each.double() for each in (eager, *others))
    away = max(float((run - wide).norm()) for run in runs)
    spread = max(float((one - other).norm()) for one in runs for other in runs)
    return not (away > _COMMON * spread and away > _LARGE * float(wide.norm()))


def _worst(eager: Tensor, float64: Tensor, others: Sequence[Tensor]) -> Tensor:
    """Each element's value from the run in which it is furthest from float64."""
    worst, error = eager, (eager.double() - float64).abs()
    for other in others:
        further = (other.double() - float64).abs()
        worst = torch.where(further > error, other, worst)
        error = torch.maximum(error, further)
    return worst


def _is_explained(again: TensorDiff, diff: TensorDiff, float64: Tensor, *, tf32: bool) -> bool:
    """False where the test's error is far above eager's, or where nothing has cancelled. Eager's error bounds nothing
    where its kernels happen to compute in float32 what others compute in TF32.
    """
    base, noise = diff.baseline, again.baseline
    assert base is not None and noise is not None and diff.test is not None
    count, eps = max(1, diff.elements), torch.finfo(getattr(torch, diff.test.dtype)).eps
    is_narrow = eps > 1e-6
    # An eager that sums in double is more exact than any rounding of its inputs: within those the test is right too
    limit = NARROW_ABOVE * base.reference_rmse
    if not is_narrow:
        limit = max(noise.reference_rmse, FAR_ABOVE * base.reference_rmse)
    if not tf32 and base.rmse > limit * (1 + SMALL / count) ** 2:
        return False
    magnitude = float(torch.linalg.vector_norm(float64)) / math.sqrt(count)
    return noise.reference_rmse > (_NARROW_CANCELLED if is_narrow else _CANCELLED) * eps * magnitude


def is_worth_repeating(diffs: Iterable[TensorDiff]) -> bool:
    """Whether a second run of eager could change the verdict: not of what is within torch.testing's tolerances."""
    return any(diff.mismatches or (not diff.passed and diff.failed_by) for diff in diffs)


def judge_repeated(diff: TensorDiff, first: object, again: object) -> TensorDiff:
    """The diff, which is not comparable if these, of two runs of eager, differ by more than the order of sums."""
    if isinstance(first, float) and isinstance(again, float):
        first, again = torch.tensor(first), torch.tensor(again)
    if not isinstance(first, Tensor) or not isinstance(again, Tensor) or _is_summation_order(first, again):
        return diff
    apart = compare_tensors(first, again, full=False)
    figure = f"up to {apart.max_abs:.3g} apart" if apart.max_abs is not None else "of another shape or dtype"
    return replace(diff, passed=False, failed_by=("unsteady",), note=Remark("eager varies", figure))


def _is_summation_order(first: Tensor, again: Tensor) -> bool:
    """Whether two runs differ by no more than sums in another order do: half of the digits on a GPU, whose atomics add
    in any order, and a few ulps elsewhere.
    """
    if first.shape != again.shape or first.dtype != again.dtype:
        return False
    if first.dtype.is_floating_point or first.dtype.is_complex:
        eps = torch.finfo(first.dtype).eps
        return relative_rmse(first, again) <= (_ULPS * eps if first.is_cpu else math.sqrt(eps))
    return compare_tensors(first, again, full=False).passed
