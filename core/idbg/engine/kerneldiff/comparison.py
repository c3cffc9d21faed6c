"""Run one comparison: the sides, the judgement of each output, and the search for what is wrong."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace as replaced
from functools import cached_property, partial
from math import inf
from typing import Any, cast

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, gpu, kernel_builds
from idbg.engine.instrument.waiting import launches_waited_for, ops_waited_for
from idbg.engine.kerneldiff.fault_localization import FaultLocalization
from idbg.engine.kerneldiff.float64 import transfer
from idbg.engine.kerneldiff.float64.memory import current_memory, foreseen, memory_limited
from idbg.engine.kerneldiff.float64.mode import float64_failure
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult, AttributionSearch
from idbg.engine.kerneldiff.observed_run import stages_with_own_draws
from idbg.engine.kerneldiff.request import FLOAT64, Backend, ComparisonRequest, compile_backend, name_of
from idbg.engine.kerneldiff.sides.compiled_way import CompiledWay
from idbg.engine.kerneldiff.sides.effects import EffectCheck
from idbg.engine.kerneldiff.sides.form import with_forms
from idbg.engine.kerneldiff.sides.leaf_comparison import ComparisonRules, compare_leaves, one_sided, without_verdict
from idbg.engine.kerneldiff.sides.nan_origin import SEARCHED, eager_nan_origins
from idbg.engine.kerneldiff.sides.random_draws import (
    RandomDrawCheck,
    differs_in_draws,
    generators_differ,
    may_differ_in_draws,
    with_proven_fault,
    with_wrong_draws,
    without_verdict_of_failed,
    without_verdict_on_draws,
)
from idbg.engine.kerneldiff.sides.resampling import BY_EAGER, BY_NOTHING, Resampling
from idbg.engine.kerneldiff.sides.run import (
    Call,
    NothingToDifferentiate,
    Side,
    SideValues,
    eager_draws,
    run_compiled,
    run_eager,
    run_float64,
)
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.sides.thresholds import ThresholdCheck
from idbg.engine.kerneldiff.stages.captured import CompileRecord
from idbg.engine.kerneldiff.steps.run import Compiler, trained, with_steps
from idbg.engine.kerneldiff.tensors import native
from idbg.engine.kerneldiff.tensors.compare import relative_rmse
from idbg.engine.kerneldiff.tensors.float64_device import float64_on, is_narrow, move_to_cpu, peak_memory, to_float64
from idbg.engine.kerneldiff.tensors.saved_outputs import SavedOutputs, digest
from idbg.engine.kerneldiff.tensors.tree import AFTER, Leaves
from idbg.engine.program.load import failed_to_differentiate
from idbg.format.amounts import size
from idbg.schema.diff import DiffReport, Float64Elsewhere, Mode, Outcome, SideResult, TensorDiff
from idbg.schema.errors import BadInput, first_line
from idbg.schema.programs import Failure
from idbg.schema.remarks import NoFloat64, Remark
from idbg.schema.steps import TrainingSteps

_WITHOUT: dict[Mode, NoFloat64] = {
    "float64": NoFloat64("waiting"),
    "rounding": NoFloat64("rounding"),
    "tolerance": NoFloat64("tolerance"),
}
_INDUCTOR = ("inductor", "aot")


class ComparisonRun:
    """One comparison in progress. `pairs` holds the compared tensors after `run`; `replaced_draws`: what the program
    compiled was compiled to draw random numbers as eager does.
    """

    def __init__(self, request: ComparisonRequest, subject: Subject) -> None:
        self.request = request
        self.subject = subject
        self.sides: list[Side] = []
        self.notes: list[Remark] = []
        self.backward = request.backward or request.loss is not None or request.may_differentiate
        self._replaces_draws = not (request.later or request.options.get("fallback_random"))
        self.replaced_draws = False
        self._runs_again = False  # without gradients: the session has the compile of the first time
        self._only_effects = False  # nothing fails but side effects
        self._compiled = CompileRecord()  # of the test side
        self._owners: AttributionSearch | None = None
        self.digest = (
            digest(subject.tensors.values()) if request.kept or isinstance(request.reference, SavedOutputs) else ""
        )
        self.float64_missing: NoFloat64 | str = (
            _WITHOUT[request.chosen_mode] if request.reference not in FLOAT64 else ""
        )
        self.elsewhere: Float64Elsewhere | None = None

    def run(self) -> DiffReport:
        """Run every side and return the report; `on_result` receives it, and partial ones before. Exceptions of a side
        are in the report. Raises BadInput where tolerances name an output that does not exist.
        """
        native.ready()  # it compiles in the background, while the program does
        self._replaces_draws &= not comparing.is_random_as_eager()
        if name_of(self.request.test) in _INDUCTOR:
            kernel_builds.start_pool({tensor.device for tensor in self.subject.tensors.values()})
        waiting = launches_waited_for() if self.request.sync else nullcontext()
        with float64_on(self.request.float64), memory_limited(self.request.memory), waiting:
            self.elsewhere = transfer.transfer_error(self.subject.tensors.values())
            report = self._run_sides()
            report = self._publish(with_steps(report, self._trained)) if self.request.steps else report
            return _with_moved(report)

    def of_sides(self, reference: Side, test: Side, *, draws_as_eager: bool) -> DiffReport:
        """Judge two sides that have run, against float64 where that can be computed. `draws_as_eager`: they drew the
        random numbers that eager and float64 draw.
        """
        native.ready()
        self._replaces_draws = draws_as_eager
        with float64_on(self.request.float64), memory_limited(self.request.memory):
            self.elsewhere = transfer.transfer_error(self.subject.tensors.values())
            self.sides += (reference, test)
            truth = self._float64(reference) if self.request.chosen_mode == "float64" else None
            if truth is not None and truth.draws and not draws_as_eager:
                truth, self.float64_missing = None, NoFloat64("draws")
            return _with_moved(self._compare(reference, test, truth))

    def _run_sides(self) -> DiffReport:
        reference = self._side(self.request.reference)
        lost = reference.values is None and gpu.is_lost()
        test = self._not_run(reference) if lost else self._side(self.request.test, self.request.runs)
        if isinstance(test.error, NothingToDifferentiate) and self._may_leave_backward:
            return self._without_gradients(test.error)
        if test.values is not None and reference.error is not None:
            self.sides[0] = reference = reference.beside_compiled(name_of(self.request.test))
        self.notes += reference.notes()
        if lost or (test.values is None and gpu.is_lost()):
            self.float64_missing = NoFloat64("device")
            return self._publish(self._compare(reference, test, None))
        truth = None
        if self.request.chosen_mode == "float64":
            if self.request.on_result:  # float64 may take long: publish first what is known without it
                self._publish(self._compare(reference, test, None, final=False))
            truth = self._float64(reference)
        undeclared = truth.undeclared if truth is not None else ()
        writes = [each for each in undeclared if not each.returned]
        self.notes += [Remark("undeclared write", each.op, each.argument) for each in writes]
        judged = self._resampling.judge_nondeterminism(self._compare(reference, test, truth), reference)
        judged, reference, truth = self._in_compiled_way(judged, reference, test, truth)
        draws = RandomDrawCheck(self.subject, self._compiler("eager"), self._begin, self._rules, self.backward)
        if self.request.later and judged.test in _INDUCTOR and not comparing.is_random_as_eager():
            judged = without_verdict_on_draws(judged, reference)
        report = self._publish(self._with_effects(draws.judge(judged, reference, test), reference, test))
        if not self._locates:
            return report
        search = FaultLocalization(
            self.request,
            self.subject,
            self.backward,
            self.notes,
            self._begin,
            partial(self._failing, reference, truth),
            self._keep,
            self._compiled,
            undeclared,
        )
        found = self._with_own_draws(search.located(self._with_nan_origins(report)))
        return self._publish(with_proven_fault(found, judged))

    def _in_compiled_way(
        self, report: DiffReport, reference: Side, test: Side, truth: Side | None
    ) -> tuple[DiffReport, Side, Side | None]:
        """The same; where the program goes another way when it is compiled, and that decides, against that way without
        a compiler.
        """
        parted = None
        if report.verdict in ("failed", "waiting"):
            parted = self._compiled_way.parting(report, reference, test)
        if parted is None or (own := self._compiled_way.side) is None:
            return report, reference, truth
        if own.error is not None:
            why = Remark("parted, alone", parted.subject, first_line(own.error))
            return without_verdict_of_failed(report, why, parted), reference, truth
        self.subject.compiled_way = self._compiled_way.context
        self.sides[:] = own, test
        self.notes.append(parted)
        del self._resampling
        self.__dict__.pop("_thresholds", None)
        truth = self._float64(own) if truth is not None else None
        again = self._resampling.judge_nondeterminism(self._compare(own, test, truth), own)
        if not again.passed or not generators_differ(reference, test):
            return again, own, truth
        self.notes.remove(parted)
        return without_verdict_of_failed(report, Remark("parted draws", parted.subject, parted.detail)), own, truth

    def _with_own_draws(self, report: DiffReport) -> DiffReport:
        """The report of a program that is right with eager's random operators, or draws other numbers than eager, with
        what is proven wrong with Inductor's own.
        """
        replaced = any(note.kind == "random as eager" for note in self.notes)
        if not (self.request.per_kernel and replaced and (report.passed or differs_in_draws(report))):
            return report
        self._begin("own random operators")
        with comparing.inductor_set(self.request.options), uncaptured():
            compile = self._compiler(self.request.test)
            wrong = stages_with_own_draws(self.subject, compile, report.stages, backward=self.backward)
        if wrong is None:
            return report
        self.notes = [note for note in self.notes if note.kind != "random as eager"]
        return with_wrong_draws(report, *wrong, self.notes)

    def _with_effects(self, report: DiffReport, reference: Side, test: Side) -> DiffReport:
        """The report with the side effects that differ."""
        if report.verdict not in ("passed", "failed"):
            return report
        effects = self._effects.judged(reference, test)
        self._only_effects = bool(effects) and report.passed
        verdict = "failed" if effects else report.verdict
        return replace(report, verdict=verdict, outputs=(*report.outputs, *effects), notes=tuple(self.notes))

    def _with_nan_origins(self, report: DiffReport) -> DiffReport:
        """The report with the origins of NaN and infinities in eager, if requested, or if an output fails by one."""
        rules = {rule for diff in (*report.outputs, *report.gradients) for rule in diff.failed_by}
        if not self.request.nan and rules.isdisjoint(("nan", "inf")):
            return report
        self._begin(SEARCHED)
        births, failure = eager_nan_origins(self.subject, backward=self.backward)
        if failure is not None:
            self.notes.append(Remark("nan search ended", detail=failure.first_line))
        return replace(report, births=births)

    def _trained(self) -> TrainingSteps:
        test = Compiler(name_of(self.request.test), self._compiler(self.request.test), self.request.options)
        return trained(self.subject, test, self.request.steps, self.backward, self.request.k, self._begin)

    def _failing(self, reference: Side, truth: Side | None, side: Side) -> float | None:
        """The largest relative RMSE of a side's failing outputs, against float64 where that ran; 0 where all pass, None
        where the side failed.
        """
        if side.values is None:
            return None
        if self._only_effects:
            return inf if self._effects.fails(reference, side) else 0.0
        diffs = (*self._outputs(reference, side, truth), *self._gradients(reference, side, truth))
        wanted, found = (truth or reference).leaves, side.leaves
        return max(
            (
                _beside_both(wanted.get(diff.name), reference.leaves.get(diff.name), found.get(diff.name))
                for diff in diffs
                if diff.failed
            ),
            default=0.0,
        )

    def _compare(self, reference: Side, test: Side, truth: Side | None, *, final: bool = True) -> DiffReport:
        outputs = self._outputs(reference, test, truth)
        gradients = self._gradients(reference, test, truth)
        self._check_tolerances((*outputs, *gradients))
        if not final:
            outputs, gradients = without_verdict(outputs), without_verdict(gradients)
        self._note_replaced_draws(reference, test)
        diffs = (*outputs, *gradients)
        report = self._report(self._outcome(diffs, final, test.graphs))
        by_rounding = any(each.why_not == BY_EAGER for diff in diffs for each in diff.criteria)
        mode: Mode = "float64" if truth is not None else "rounding" if by_rounding else "tolerance"
        unknown = BY_NOTHING if report.verdict == "waiting" and final else ""
        return replace(
            report, mode=mode, outputs=outputs, gradients=gradients, variance=test.variance, not_comparable=unknown
        )

    def _note_replaced_draws(self, reference: Side, test: Side) -> None:
        """Note that eager's random operators ran in the place of Inductor's."""
        drew = reference if self.request.reference == "eager" else test
        note = Remark("random as eager", name_of(self.request.test))
        draws = drew.values is not None and drew.values.drew and test.graphs != 0
        if note.subject in _INDUCTOR and draws and self._replaces_draws:
            self.replaced_draws = True
            self.notes += [note] if note not in self.notes else []

    def _outcome(self, diffs: tuple[TensorDiff, ...], final: bool, graphs: int | None = None) -> Outcome:
        if any(side.values is None for side in self.sides[:2]):
            return "error"
        if not final:
            return "waiting"
        if any(each.failed for each in diffs):
            return "failed"
        if not all(each.passed for each in diffs):
            return "waiting"
        return "empty" if graphs == 0 else "passed"

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

    def _publish(self, report: DiffReport) -> DiffReport:
        if self.request.on_result:
            self.request.on_result(report)
        return report

    # Sides

    def _side(self, backend: Backend | SavedOutputs, runs: int = 1) -> Side:
        self._begin(name_of(backend))
        if isinstance(backend, SavedOutputs):
            side = self._of_session(backend)
        else:
            side = self._run(backend, runs)
            if not (self.sides or self.subject.grad or self.backward) and failed_to_differentiate(side.error):
                self.subject.grad = True  # a whole training step, whose own backward needs recorded gradients
                side = self._run(backend, runs)
            if not self.sides and side.error is not None and self._may_leave_backward:
                side = self._forward_alone(backend, side)
            if self.sides and self.request.reference == "eager" and self.sides[0].values is not None:
                side = side.beside_eager(is_own_backend=callable(backend))
        self.sides.append(side)
        so_far = self._report(self._outcome((), final=False))
        if len(self.sides) == 1:  # the other may take the process with it
            why = Remark("not run yet", name_of(self.request.test))
            values = side.values or SideValues({}, {})
            outputs, gradients = (one_sided(leaves, None, why) for leaves in (values.outputs, values.gradients))
            so_far = replace(so_far, outputs=outputs, gradients=gradients)
        self._publish(so_far)
        return side

    def _forward_alone(self, backend: Backend, side: Side) -> Side:
        """Runs the reference without its optional backward, if that made it fail."""
        if gpu.is_lost():
            return side
        self.backward = False
        forward = self._run(backend, 1)
        if forward.error is None and not isinstance(side.error, NothingToDifferentiate):
            why = first_line(cast("BaseException", side.error))
            self.notes.append(Remark("forward alone", name_of(backend), why))
        return forward

    @property
    def _may_leave_backward(self) -> bool:
        """Whether no gradients were requested: they are compared where the program's own call recorded them."""
        return self.backward and not (self.request.backward or self.request.loss)

    def _without_gradients(self, error: NothingToDifferentiate) -> DiffReport:
        """The comparison of the forward alone, as in inference: the compiled side records no gradients."""
        self.notes.append(Remark("forward alone", name_of(self.request.test), error.message.partition(": ")[2]))
        self.backward = self.subject.grad = False
        self._runs_again = True
        self.sides.clear()
        return self._run_sides()

    def _not_run(self, reference: Side) -> Side:
        """The test side, which cannot run after the reference made the device fail."""
        why = f"not run: the device failed in {reference.result.name}, and does nothing more for this process"
        failure = Failure(kind="torch", message=why, hint=f"fix the error of {reference.result.name} first")
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
        own = self.request.compiled
        if own is not None and self.sides and not self.subject.input_gradients:
            with uncaptured(lowers=True) if self._runs_again else nullcontext():
                side = self._run_compiled(backend, runs, lambda _: own)
            if self.request.later:
                return replaced(side, graphs=None)
            if side.graphs != 0 or side.values is None:
                return side
            # it compiles nothing, or is made of what the program compiled before: a compile of its own shows which
        # a session records its test side alone, and where the program itself compiles that, only what it compiles
        with uncaptured() if own is not None or not self.sides or self._runs_again else nullcontext():
            side = self._run_compiled(backend, runs)
        if side.values is not None and side.graphs == 0:
            self.notes.append(Remark("no graph", name_of(backend)))
        return side

    def _run_compiled(self, backend: Backend, runs: int, own: Callable[[Call], Call] | None = None) -> Side:
        """The model compiled for the backend, or as the program's `own` compile returns it."""
        compile, record = own or self._compiler(backend), self._compiled
        with comparing.inductor_set(self.request.options):
            return run_compiled(
                name_of(backend),
                self.subject,
                record.compiling(compile) if self.sides else compile,
                backward=self.backward,
                runs=runs,
                within=record.captured if self.sides and self._locates else nullcontext,
                fresh=own is None,
                as_eager=not self.request.later,
            )

    @property
    def _locates(self) -> bool:
        """Whether what is wrong is searched for in the compiled code."""
        return self.request.per_kernel or self.request.nan

    def _of_session(self, saved: SavedOutputs) -> Side:
        """The outputs that another session saved, as a side; a failed one if that session had other inputs."""
        if self.digest not in saved.digests:
            why = BadInput(
                "its inputs and weights were not the ones that this run has",
                hint="seed the program, torch.manual_seed(0), and make the session again",
            )
            return Side(SideResult(saved.__name__, failure=why.failure()), error=why)
        gradients = {name: value for name, value in saved.items() if name.startswith("grad(")}
        outputs = {name: value for name, value in saved.items() if name not in gradients}
        return Side(SideResult(saved.__name__), SideValues(outputs, gradients))

    def _float64(self, reference: Side) -> Side | None:
        """The float64 side; None if there is none that can be trusted, with the reason in `float64_missing`."""
        if reference.error is not None:
            self.float64_missing = NoFloat64("reference", reference.result.name)
            return None
        if not any(map(is_narrow, (*self.subject.tensors.values(), *reference.leaves.values()))):
            self.float64_missing = NoFloat64("not narrow")
            return None
        tensors = list(self.subject.tensors.values())
        peak = peak_memory(tensors)
        self._begin("float64" + foreseen(tensors, peak))
        side = run_float64(self.subject, backward=self.backward)
        # beside other ranks no side runs twice: they would wait
        if isinstance(side.error, torch.OutOfMemoryError) and self.request.agree is bool:
            side = Side(side.result, error=side.error.with_traceback(None))  # which held what was computed
            if move_to_cpu(tensors, peak):
                self.elsewhere = transfer.transfer_error(tensors)
                self._begin("float64 on the CPU")
                side = run_float64(self.subject, backward=self.backward)
        if side.error is not None:
            self.float64_missing = NoFloat64("failed", float64_failure(side.error), on_cpu=self.elsewhere is not None)
            return None
        assert reference.values is not None and side.values is not None
        far = bool(side.draws) and may_differ_in_draws(reference.values.outputs, side.values.outputs)
        if self.request.agree(far) and side.draws != eager_draws(self.subject, backward=self.backward):
            self.float64_missing = NoFloat64("draws")
            return None
        self.float64_missing = ""
        self.sides.append(side)
        return side

    # Judging

    def _outputs(self, reference: Side, test: Side, truth: Side | None) -> tuple[TensorDiff, ...]:
        if reference.values is None or test.values is None:
            return self._one_sided("outputs", reference, test)
        ours, theirs = dict(reference.values.outputs), dict(test.values.outputs)
        true = dict(truth.values.outputs) if truth and truth.values else None
        written = [name for name in (*ours, *theirs) if name.endswith(AFTER)]
        ours |= self._unwritten(written, ours)
        theirs |= self._unwritten(written, theirs)
        if true is not None:
            true |= {name: to_float64(value) for name, value in self._unwritten(written, true).items()}
        diffs = self._judged(ours, theirs, true)
        return with_forms(diffs, reference.values.forms, test.values.forms, reference.result.name)

    def _gradients(self, reference: Side, test: Side, truth: Side | None) -> tuple[TensorDiff, ...]:
        if reference.values is None or test.values is None:
            return self._one_sided("gradients", reference, test)
        true = truth.values.gradients if truth and truth.values else None
        return self._judged(reference.values.gradients, test.values.gradients, true)

    def _one_sided(self, which: str, reference: Side, test: Side) -> tuple[TensorDiff, ...]:
        """The outputs or gradients of the one side that did not fail."""
        failed = Remark("side failed", ", ".join(side.result.name for side in self.sides if side.values is None))
        return one_sided(getattr(reference.values, which, None), getattr(test.values, which, None), failed)

    @property
    def pairs(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The tensors of reference and test, by name, that both have."""
        if len(self.sides) < 2:
            return {}
        one, other = (side.leaves for side in self.sides[:2])
        both = [(name, value, other.get(name)) for name, value in one.items()]
        return {
            name: (value, again)
            for name, value, again in both
            if isinstance(value, Tensor) and isinstance(again, Tensor)
        }

    def _judged(self, reference: Leaves, test: Leaves, float64: Leaves | None) -> tuple[TensorDiff, ...]:
        if self.request.reference in FLOAT64:
            reference = {name: _as(value, test.get(name)) for name, value in reference.items()}
        diffs = compare_leaves(reference, test, float64, self._rules)
        if float64 is not None:
            diffs = self._resampling.judge_rounding(diffs, reference, test, float64)
            return self._thresholds.judge(diffs, reference, test, float64)
        if not self._is_by_rounding:
            return diffs
        return self._resampling.judge_by_eager(diffs, reference, test, self._rules.tolerances)

    @property
    def _is_by_rounding(self) -> bool:
        """Whether eager's rounding decides where float64 was sought and is not there; beside other ranks, tolerances
        do.
        """
        missing, request = self.float64_missing, self.request
        why = missing.why if isinstance(missing, NoFloat64) else ""
        return why in ("rounding", "draws", "failed") and request.reference == "eager" and request.agree is bool

    @cached_property
    def _resampling(self) -> Resampling:
        return Resampling(self.subject, self.request.k, self._begin, self.notes, self.backward, self.request.agree)

    @cached_property
    def _thresholds(self) -> ThresholdCheck:
        return ThresholdCheck(self._resampling, self._rules)

    @cached_property
    def _effects(self) -> EffectCheck:
        dynamo = self._compiler("eager")
        own = partial(getattr, self._compiled_way, "side")
        return EffectCheck(self.subject, self.backward, dynamo, self._test_again, own, self.notes, self._begin)

    @cached_property
    def _compiled_way(self) -> CompiledWay:
        return CompiledWay(self.subject, self.backward, self._test_again, self._begin)

    def _test_again(self) -> Side:
        """The test side once more, with what it has compiled; one that failed where it cannot run again."""
        backend, call = self.request.test, self._compiled.call
        if call is None:
            return Side(SideResult(name_of(backend)))
        with uncaptured(lowers=True), comparing.inductor_set(self.request.options):
            return run_compiled(
                name_of(backend),
                self.subject,
                lambda _: call,
                backward=self.backward,
                fresh=False,
                as_eager=not self.request.later,
            )

    @cached_property
    def _rules(self) -> ComparisonRules:
        request = self.request
        return ComparisonRules(request.k, request.atol, request.rtol, request.tolerances or {})

    def _unwritten(self, names: Iterable[str], side: Leaves) -> dict[str, Tensor]:
        """The initial values of state that another side has written to and this one has not."""
        values = {name: self.subject.initial(name.removesuffix(AFTER)) for name in names if name not in side}
        return {name: value for name, value in values.items() if value is not None}

    def _check_tolerances(self, diffs: Iterable[TensorDiff]) -> None:
        names = [diff.name for diff in diffs]
        unknown = [name for name in self.request.tolerances or {} if name not in names]
        if unknown and names:
            raise BadInput(f"no output is called {unknown[0]!r}", hint=f"there are: {', '.join(names)}")

    def owner(self, report: DiffReport, launch: int) -> AttributionResult:
        """Attribute the error of one of the report's kernels: the model runs again, and the launch alone.

        Raises BadInput if no kernels were observed, or the model cannot run again.
        """
        one = report.kernels[launch]
        if self._owners is None or not one.is_launch:
            raise BadInput(f"{one.name} is no kernel that was observed", hint="compare with each kernel (D)")
        return self._owners.find(report, launch)

    def _keep(self, record: CompileRecord) -> None:
        self._owners = AttributionSearch(self.request, self.subject, record, self.backward)

    def _compiler(self, backend: Backend) -> Callable[..., Any]:
        return partial(torch.compile, backend=compile_backend(backend), dynamic=self.request.dynamic)


def _with_moved(report: DiffReport) -> DiffReport:
    """The report with what has moved in all of the comparison."""
    moved = current_memory().moved
    return replace(report, notes=(*report.notes, Remark("float64 moved", size(moved)))) if moved else report


def _relative(wanted: object, found: object) -> float:
    both = isinstance(wanted, Tensor) and isinstance(found, Tensor) and wanted.shape == found.shape
    return relative_rmse(cast("Tensor", wanted), cast("Tensor", found)) if both else inf


def _beside_both(wanted: object, eager: object, found: object) -> float:
    """The error beside what is larger: of what is zero in mathematics eager's rounding, not that of float64."""
    error = _relative(wanted, found)
    return min(error, _relative(eager, found) or error)


def _as(value: object, like: object) -> object:
    return value.to(like.dtype) if isinstance(value, Tensor) and isinstance(like, Tensor) else value
