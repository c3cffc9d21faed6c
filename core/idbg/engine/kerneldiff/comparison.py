"""ComparisonRules does one comparison go: which sides run, what is held against what, and what is the verdict?"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cached_property, partial
from math import inf
from typing import Any, cast

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, gpu
from idbg.engine.instrument.waiting import launches_waited_for, ops_waited_for
from idbg.engine.kerneldiff.fault_localization import FaultLocalization
from idbg.engine.kerneldiff.float64 import transfer
from idbg.engine.kerneldiff.float64.mode import float64_failure, is_narrow, to_float64
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult, AttributionSearch
from idbg.engine.kerneldiff.kernels.observe import Rerun
from idbg.engine.kerneldiff.observed_run import CapturedCompile
from idbg.engine.kerneldiff.request import FLOAT64, Backend, ComparisonRequest, compile_backend, name_of
from idbg.engine.kerneldiff.sides.form import with_forms
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves, one_sided, without_verdict
from idbg.engine.kerneldiff.sides.nan_origin import SEARCHED, eager_nan_origins
from idbg.engine.kerneldiff.sides.random_draws import RandomDrawCheck, Reruns, may_differ_in_draws, with_proven_fault
from idbg.engine.kerneldiff.sides.resampling import Samples, is_doubtful, looked_at_again, rounded_samples
from idbg.engine.kerneldiff.sides.run import (
    ROUNDED,
    Given,
    NothingToDifferentiate,
    Side,
    eagers_draws,
    run_compiled,
    run_eager,
    run_float64,
)
from idbg.engine.kerneldiff.sides.steady import doubtful, with_steadiness
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.sides.traced import TRACED, traced_samples
from idbg.engine.kerneldiff.steps.run import Compiler, trained, with_steps
from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import relative_rmse
from idbg.engine.kerneldiff.tensors.float64_device import float64_on
from idbg.engine.kerneldiff.tensors.saved_outputs import SavedOutputs, digest
from idbg.engine.kerneldiff.tensors.tree import AFTER, Leaves
from idbg.engine.program.training_step import failed_to_differentiate
from idbg.schema.diff import DiffReport, Mode, Outcome, SideResult, TensorDiff
from idbg.schema.errors import BadInput, exception_text
from idbg.schema.float64 import Float64Elsewhere
from idbg.schema.programs import Failure
from idbg.schema.steps import TrainingSteps

_WITHOUT: dict[Mode, str] = {"float64": "not run yet", "tolerance": "not run: tolerances were asked for"}


class ComparisonRun:
    """One comparison as it goes on."""

    def __init__(self, request: ComparisonRequest, subject: Subject) -> None:
        self.request = request
        self.subject = subject
        self.sides: list[Side] = []
        self.notes: list[str] = []
        self.backward = request.backward or request.loss is not None or request.may_differentiate
        self._owners: AttributionSearch | None = None
        self.digest = (
            digest(subject.tensors.values()) if request.kept or isinstance(request.reference, SavedOutputs) else ""
        )
        self.float64_missing = _WITHOUT[request.chosen_mode] if request.reference not in FLOAT64 else ""
        self.elsewhere: Float64Elsewhere | None = None
        self._compiled = CapturedCompile() if request.per_kernel or request.nan else None

    def run(self) -> DiffReport:
        """The report, once every side has run; `on_result` has heard of it by then. Raises BadInput where tolerances
        name an output that there is not; what a side raises is told in the report.
        """
        native.ready()  # it is compiled while the program is
        with float64_on(self.request.float64), launches_waited_for() if self.request.sync else nullcontext():
            self.elsewhere = transfer.transfer_error(self.subject.tensors.values())
            report = self._run_sides()
            return self._told(with_steps(report, self._trained)) if self.request.steps else report

    def _run_sides(self) -> DiffReport:
        reference = self._side(self.request.reference)
        lost = reference.given is None and gpu.is_lost()
        test = self._not_run(reference) if lost else self._side(self.request.test, self.request.runs)
        self.notes += reference.notes()
        if lost or (test.given is None and gpu.is_lost()):
            self.float64_missing = "not run: the device failed"
            return self._told(self._compare(reference, test, None))
        truth = None
        if self.request.chosen_mode == "float64":
            if self.request.on_result:  # a float64 side may take long: what is known without it is told first
                self._told(self._compare(reference, test, None, final=False))
            truth = self._float64(reference)
        undeclared = truth.undeclared if truth is not None else ()
        self.notes += map(str, undeclared)
        judged = self._steadied(self._compare(reference, test, truth), reference)
        rerun = Reruns(self.subject, self._compiler("eager"), self.backward, self._begin)
        report = self._told(RandomDrawCheck(reference, test, rerun, self._how).unjudged(judged))
        if not (self.request.per_kernel or self.request.nan):
            return report
        report = self._with_births(report)
        failing = partial(self._failing, reference, truth)
        search = FaultLocalization(
            self.request,
            self.subject,
            self.backward,
            self.notes,
            self._begin,
            failing,
            self._keep,
            self._compiled,
            undeclared,
        )
        return self._told(with_proven_fault(search.located(report), judged))

    def _with_births(self, report: DiffReport) -> DiffReport:
        """The report with where NaN and infinities are born in eager, where that is asked for, or an output fails by
        one.
        """
        by = {rule for diff in (*report.outputs, *report.gradients) for rule in diff.failed_by}
        if not self.request.nan and by.isdisjoint(("nan", "inf")):
            return report
        self._begin(SEARCHED)
        births, failure = eager_nan_origins(self.subject, backward=self.backward)
        if failure is not None:
            self.notes.append(f"the search for NaN in eager ended early: {failure.message.partition(chr(10))[0]}")
        return replace(report, births=births)

    def _trained(self) -> TrainingSteps:
        test = Compiler(name_of(self.request.test), self._compiler(self.request.test), self.request.options)
        return trained(self.subject, test, self.request.steps, self.backward, self.request.k, self._begin)

    def _failing(self, reference: Side, truth: Side | None, side: Side) -> float | None:
        """The largest relative RMSE, against float64 where that ran, of a side's outputs that fail; 0 where they pass,
        None where it gave nothing.
        """
        if side.given is None:
            return None
        diffs = (*self._outputs(reference, side, truth), *self._gradients(reference, side, truth))
        given, wanted = ({**(each.outputs or {}), **(each.gradients or {})} for each in (side, truth or reference))
        pairs = ((wanted.get(diff.name), given.get(diff.name)) for diff in diffs if diff.failed)
        return max((_relative(*pair) for pair in pairs), default=0.0)

    def _compare(self, reference: Side, test: Side, truth: Side | None, *, final: bool = True) -> DiffReport:
        outputs = self._outputs(reference, test, truth)
        gradients = self._gradients(reference, test, truth)
        self._check_tolerances(outputs, gradients)
        if not final:
            outputs, gradients = without_verdict(outputs), without_verdict(gradients)
        report = self._report(self._outcome((*outputs, *gradients), final, test.graphs))
        mode: Mode = "tolerance" if truth is None else "float64"
        return replace(report, mode=mode, outputs=outputs, gradients=gradients, variance=test.variance)

    def _outcome(self, diffs: tuple[TensorDiff, ...], final: bool, graphs: int | None = None) -> Outcome:
        if any(side.given is None for side in self.sides[:2]):
            return "error"
        if not final:
            return "waiting"
        if not all(each.passed for each in diffs):
            return "failed"
        return "empty" if graphs == 0 else "passed"

    def _steadied(self, report: DiffReport, reference: Side) -> DiffReport:
        """The report without what eager itself gives otherwise each time."""
        diffs = (*report.outputs, *report.gradients)
        if reference.given is None or reference.result.name != "eager" or not doubtful(diffs):
            return report
        self._begin("eager again")
        again = run_eager(self.subject, backward=self.backward).given
        if again is None:
            return report
        outputs = with_steadiness(report.outputs, reference.given.outputs, again.outputs, "eager")
        gradients = with_steadiness(report.gradients, reference.given.gradients, again.gradients, "eager")
        if (*outputs, *gradients) == diffs:
            return report
        return replace(report, verdict="failed", outputs=outputs, gradients=gradients)

    def _report(self, verdict: Outcome) -> DiffReport:
        return DiffReport(
            test=name_of(self.request.test),
            reference=name_of(self.request.reference),
            verdict=verdict,
            mode="tolerance",
            float64_missing=self.float64_missing,
            sides=tuple(side.result for side in self.sides),
            notes=tuple(self.notes),
            float64_elsewhere=self.elsewhere,
        )

    def _told(self, report: DiffReport) -> DiffReport:
        if self.request.on_result:
            self.request.on_result(report)
        return report

    # Sides

    def _side(self, backend: Backend | SavedOutputs, runs: int = 1) -> Side:
        self._begin(name_of(backend))
        side = self._of_session(backend) if isinstance(backend, SavedOutputs) else self._run(backend, runs)
        if not (self.sides or self.subject.grad or self.backward) and failed_to_differentiate(side.error):
            self.subject.grad = True  # a whole training step: what it calls itself needs gradients to be recorded
            side = self._run(cast("Backend", backend), runs)
        if not self.sides and side.error is not None and not (self.request.backward or self.request.loss):
            side = self._forward_alone(backend, side)
        self.sides.append(side)
        so_far = self._report(self._outcome((), final=False))
        if len(self.sides) == 1:  # the other may take the process with it
            why = f"{name_of(self.request.test)} gave nothing yet"
            outputs, gradients = (one_sided(leaves, None, why) for leaves in (side.outputs, side.gradients))
            so_far = replace(so_far, outputs=outputs, gradients=gradients)
        self._told(so_far)
        return side

    def _forward_alone(self, backend: Backend | SavedOutputs, side: Side) -> Side:
        """The reference without the backward pass that nobody demands, where that made it fail."""
        if not self.backward or isinstance(backend, SavedOutputs) or gpu.is_lost():
            return side
        self.backward = False
        forward = self._run(backend, 1)
        if forward.error is None and not isinstance(side.error, NothingToDifferentiate):
            why = exception_text(cast("BaseException", side.error)).strip().partition("\n")[0]
            self.notes.append(
                f"the forward alone is compared: {name_of(backend)} cannot differentiate its outputs: {why}"
            )
        return forward

    def _not_run(self, reference: Side) -> Side:
        """The test side where the device does nothing more for this process."""
        why = f"not run: the device failed in {reference.result.name}, and does nothing more for this process"
        failure = Failure(kind="torch", message=why, hint=f"fix what {reference.result.name} says first")
        self.sides.append(Side(SideResult(name_of(self.request.test), failure=failure)))
        return self.sides[-1]

    def _begin(self, side: str) -> None:
        if self.request.on_side:
            self.request.on_side(side)

    def _run(self, backend: Backend, runs: int) -> Side:
        if backend in FLOAT64:
            return run_float64(self.subject, backward=self.backward)
        if backend == "eager" and not self.sides:
            with ops_waited_for() if self.request.sync else nullcontext():
                return run_eager(self.subject, backward=self.backward)
        compile = self._compiler(backend)
        others = uncaptured() if not self.sides else nullcontext()  # a session hears of its test side alone
        kept = self._compiled if self.sides else None
        compile = kept.compiling(compile) if kept else compile
        with comparing.inductor_set(self.request.options), others:
            side = run_compiled(
                name_of(backend),
                self.subject,
                compile,
                backward=self.backward,
                runs=runs,
                within=kept.captured if kept else nullcontext,
            )
        if side.given is not None and side.graphs == 0:
            self.notes.append(f"{name_of(backend)} was given no graph: what ran is the program as it is")
        return side

    def _of_session(self, kept: SavedOutputs) -> Side:
        """What another session's run gave, as a side; a failed one where it was not given the same."""
        if self.digest not in kept.digests:
            why = BadInput(
                "its inputs and weights were not the ones that this run has",
                hint="seed the program, torch.manual_seed(0), and make the session again",
            )
            return Side(SideResult(kept.__name__, failure=why.failure()), error=why)
        gradients = {name: value for name, value in kept.items() if name.startswith("grad(")}
        outputs = {name: value for name, value in kept.items() if name not in gradients}
        return Side(SideResult(kept.__name__), Given(outputs, gradients))

    def _float64(self, reference: Side) -> Side | None:
        """The float64 side; None, and why in `float64_missing`, where there is none that can be trusted."""
        if reference.error is not None:  # it is no matter of float64
            self.float64_missing = f"not run: {reference.result.name} failed"
            return None
        leaves = {**(reference.outputs or {}), **(reference.gradients or {})}
        if not any(map(is_narrow, (*self.subject.tensors.values(), *leaves.values()))):
            self.float64_missing = "not run: the program has no floating numbers below float64"
            return None
        self._begin("float64")
        side = run_float64(self.subject, backward=self.backward)
        if side.error is not None:
            self.float64_missing = float64_failure(side.error) + (" (it ran on the CPU)" if self.elsewhere else "")
            return None
        far = side.draws and may_differ_in_draws(reference.outputs or {}, side.outputs or {})
        if far and side.draws != eagers_draws(self.subject, backward=self.backward):
            self.float64_missing = "the random numbers that the program draws are not those that it draws in float64"
            return None
        self.float64_missing = ""
        self.sides.append(side)
        return side

    # What they gave

    def _outputs(self, reference: Side, test: Side, truth: Side | None) -> tuple[TensorDiff, ...]:
        if reference.outputs is None or test.outputs is None:
            return one_sided(reference.outputs, test.outputs, self._failed)
        ours, theirs = dict(reference.outputs), dict(test.outputs)
        true = dict(truth.outputs) if truth and truth.outputs is not None else None
        written = [name for name in (*ours, *theirs) if name.endswith(AFTER)]
        ours |= self._left_alone(written, ours)
        theirs |= self._left_alone(written, theirs)
        if true is not None:
            left = self._left_alone(written, true)
            true |= {name: to_float64(value) for name, value in left.items()}
        return with_forms(self._compared(ours, theirs, true), reference.forms, test.forms, reference.result.name)

    @property
    def pairs(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The tensors of reference and test, by name, that both gave."""
        if len(self.sides) < 2:
            return {}
        one, other = ({**(side.outputs or {}), **(side.gradients or {})} for side in self.sides[:2])
        both = [(name, value, other.get(name)) for name, value in one.items()]
        return {
            name: (value, again)
            for name, value, again in both
            if isinstance(value, Tensor) and isinstance(again, Tensor)
        }

    def _gradients(self, reference: Side, test: Side, truth: Side | None) -> tuple[TensorDiff, ...]:
        if reference.gradients is None or test.gradients is None:
            return one_sided(reference.gradients, test.gradients, self._failed)
        return self._compared(reference.gradients, test.gradients, truth.gradients if truth else None)

    def _compared(self, reference: Leaves, test: Leaves, float64: Leaves | None) -> tuple[TensorDiff, ...]:
        request = self.request
        if request.reference in FLOAT64:
            reference = {name: _as(value, test.get(name)) for name, value in reference.items()}
        diffs = compare_leaves(reference, test, float64, self._how)
        if float64 is None or not any(map(is_doubtful, diffs)):
            return diffs
        sides = reference, test, float64
        for name in ("_rounded", "_summed"):
            diffs = tuple(
                looked_at_again(each, sides, getattr(self, name), self._before(each.name), request.k)
                if is_doubtful(each)
                else each
                for each in diffs
            )
        if not self.subject.optimizers or not any(map(is_doubtful, diffs)):
            return diffs
        self._begin(TRACED)
        samples = self._rounded.and_more(traced_samples(self.subject, reference, backward=self.backward))
        return tuple(
            looked_at_again(each, sides, samples, self._before(each.name), request.k, few=True)
            if is_doubtful(each)
            else each
            for each in diffs
        )

    @cached_property
    def _rounded(self) -> Samples:
        """What eager gives where its ops round otherwise."""
        samples = self._sampled(one_by_one=False)
        self.notes += samples.notes()
        return samples

    @cached_property
    def _summed(self) -> Samples:
        """The same, and what eager gives where its sums add one number after another, as Inductor's do: of equal
        numbers, which the gradient of a mean is, their roundings do not cancel.
        """
        return self._rounded.and_more(self._sampled(one_by_one=True).runs)

    def _sampled(self, *, one_by_one: bool) -> Samples:
        self._begin(ROUNDED)
        return rounded_samples(self.subject, backward=self.backward, one_by_one=one_by_one)

    @property
    def _how(self) -> ComparisonRules:
        return ComparisonRules(self.request.k, self.request.atol, self.request.rtol, self.request.tolerances or {})

    def _before(self, name: str) -> Tensor | None:
        return self.subject.initial(name.removesuffix(AFTER)) if name.endswith(AFTER) else None

    @property
    def _failed(self) -> str:
        return ", ".join(side.result.name for side in self.sides if side.given is None) + " failed"

    def _left_alone(self, names: Iterable[str], side: Leaves) -> dict[str, Tensor]:
        """The state that another side has written to and this one has not: as it was."""
        values = {name: self.subject.initial(name.removesuffix(AFTER)) for name in names if name not in side}
        return {name: value for name, value in values.items() if value is not None}

    def _check_tolerances(self, *compared_diffs: tuple[TensorDiff, ...]) -> None:
        names = [diff.name for diffs in compared_diffs for diff in diffs]
        unknown = [name for name in self.request.tolerances or {} if name not in names]
        if unknown and names:
            raise BadInput(f"no output is called {unknown[0]!r}", hint=f"there are: {', '.join(names)}")

    def owner(self, report: DiffReport, launch: int) -> AttributionResult:
        """Whose the error of this one of the report's kernels is: the model runs again, and the launch alone.

        Raises BadInput where no kernels were observed, or it cannot run again.
        """
        one = report.kernels[launch]
        if self._owners is None or one.bisected:
            raise BadInput(f"{one.name} is no kernel that was observed", hint="compare with each kernel (D)")
        return self._owners.find(report, launch)

    def _keep(self, again: Rerun) -> None:
        self._owners = AttributionSearch(self.request, self.subject, again, self.backward)

    def _compiler(self, backend: Backend) -> Callable[..., Any]:
        return partial(torch.compile, backend=compile_backend(backend), dynamic=self.request.dynamic)


def _relative(wanted: object, given: object) -> float:
    both = isinstance(wanted, Tensor) and isinstance(given, Tensor) and wanted.shape == given.shape
    return relative_rmse(cast("Tensor", wanted), cast("Tensor", given)) if both else inf


def _as(value: object, like: object) -> object:
    return value.to(like.dtype) if isinstance(value, Tensor) and isinstance(like, Tensor) else value
