"""Compare a program with a reference, and examine the differences."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from itertools import chain
from pathlib import Path
from typing import TypeVar, get_args

import torch
from msgspec.structs import replace
from torch import Tensor

from idbg.engine.backends import TargetBackend
from idbg.engine.capture.run import comparing_now
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.comparison import ComparisonRun
from idbg.engine.kerneldiff.in_program.later_calls import ComparedCalls
from idbg.engine.kerneldiff.kernel_attribution.search import AttributionResult
from idbg.engine.kerneldiff.tensors.error_map import error_map
from idbg.engine.kerneldiff.tensors.saved_outputs import load_outputs, save_outputs
from idbg.engine.program.load import Workload
from idbg.engine.program.torch_compile import CurrentBackend, ProgramCall, original_torch_compile
from idbg.schema import events
from idbg.schema.attribution import KernelAttribution
from idbg.schema.code import OutputCode
from idbg.schema.diff import EAGER, Comparison, DiffReport, ErrorMap, KernelError, Mode, Outcome, TensorDiff, sayable
from idbg.schema.errors import BadInput
from idbg.schema.events import SessionEvent
from idbg.schema.faults import NanOrigin
from idbg.schema.graphs import Part
from idbg.schema.programs import Target
from idbg.schema.remarks import Remark
from idbg.schema.runs import Run
from idbg.schema.steps import Trained, TrainingSteps

T = TypeVar("T")

_WORST_FIRST: tuple[Outcome, ...] = ("error", "failed", "waiting", "passed", "empty")
_TRAINED_WORST_FIRST: tuple[Trained, ...] = ("error", "failed", "passed", "unjudged")


@dataclass
class RunComparison:
    """One run's comparison: of the program's model, or of each function that a script compiles."""

    run: Run  # as it was captured so far
    request: Comparison
    target: Target
    backend_for: Callable[[Mapping[str, object]], TargetBackend]
    folder: Path
    emit: Callable[[SessionEvent], None]
    reports: list[DiffReport] = field(default_factory=list)
    pairs: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)
    comparisons: list[ComparisonRun] = field(default_factory=list)  # of each report
    _prefix: str = ""  # of the outputs of what is compared now
    _compared: Counter[str] = field(default_factory=Counter)  # how often a function of this name was
    _calls: dict[tuple[int, bool], ComparedCalls] = field(default_factory=dict)  # by the compiled function
    _unjudged: list[Remark] = field(default_factory=list)  # later calls
    _is_comparing: bool = False
    _ended: int = 0
    _emitted: DiffReport | None = None

    def __call__(self, workload: Workload, name: str, own: CurrentBackend | None) -> None:
        """Compare; of a script's functions each output is called by the function's `name` too.

        `own` is what the script's torch.compile was given as its backend. If that names one of the script's, that side
        is tested, if nobody chose another.
        """
        request, reference = self.request, self.request.reference
        self._ended, self._prefix = 0, f"{self._unique(name)}: " if name else ""
        comparison = ModelDiff(
            workload.model,
            workload.args,
            workload.kwargs,
            loss=workload.loss,
            backward=request.backward,
            backward_if_recorded=bool(name) and workload.grad,
            reference=load_outputs(Path(reference), self._prefix) if os.path.isabs(reference) else reference,
            test=self.backend_for(own.arguments).with_options(own.options) if own else self.backend_for({}),
            compiled=workload.compiled,
            atol=request.atol,
            rtol=request.rtol,
            k=request.k,
            grad=workload.grad,
            runs=request.runs,
            dynamic=self.target.dynamic,
            per_kernel=request.per_kernel,
            sync=request.sync,
            nan=request.nan,
            steps=request.steps,
            float64=self.target.float64,
            memory=self.target.float64_memory,
            kept=True,
            on_side=self._side_began,
            on_result=self._so_far,
        ).begin()
        self.comparisons.append(comparison)
        with self._comparing():
            report = comparison.run()
            if workload.compiled is not None and comparison.replaced_draws:  # the program itself draws as in its run
                torch.compiler.reset()
        self.digests.append(comparison.digest)
        self.pairs |= {self._prefix + key: pair for key, pair in comparison.pairs.items()}
        self.reports.append(self._named(report))
        if name and report.verdict == "passed" and request.reference == EAGER:
            key = id(workload.compiled), workload.grad
            self._calls[key] = ComparedCalls(self._prefix.removesuffix(": "), comparison, workload)

    @contextmanager
    def _comparing(self, *, later: bool = False) -> Iterator[None]:
        before, self._is_comparing = self._is_comparing, True
        try:
            with original_torch_compile(), comparing_now(later=later):
                yield
        finally:
            self._is_comparing = before

    def later(self, workload: Workload, call: ProgramCall) -> None:
        """Compare a later call of a function whose first call is right, if it is its turn; the program goes on as
        without it.
        """
        calls = self._calls.get((id(call.compiled), workload.grad))
        if calls is None or self._is_comparing:
            return
        try:
            if not calls.is_due(call, workload):
                return
            with self._comparing(later=True):
                found = calls.compared(call, workload)
        # Broad on purpose: what cannot be copied, run again or judged must not end the user's program.
        except Exception as error:
            self._unjudged.append(calls.not_compared(call, error))
            return
        if found is not None:
            comparison, report = found
            self._prefix = f"{calls.name} call {call.number}: "
            self.comparisons.append(comparison)
            self.pairs |= {self._prefix + key: pair for key, pair in comparison.pairs.items()}
            self.reports.append(replace(self._named(report), stages_of=calls.name))
            self._tell(self.reports, ended=False)

    def end(self) -> None:
        """Emit the report, and store the test side's outputs for later sessions to compare with."""
        if not self.reports:
            return
        self._tell([*self.reports[:-1], self._with_later_calls(self.reports[-1])])
        problem = save_outputs(
            {name: test for name, (_, test) in self.pairs.items()}, self.digests, self.folder, self.run.number
        )
        if problem:
            self.emit(events.Noted(level="warning", text=problem))

    def _with_later_calls(self, report: DiffReport) -> DiffReport:
        """The report, with which calls were compared."""
        numbers = [(calls.name, calls.numbers) for calls in self._calls.values() if len(calls.numbers) > 1]
        compared = [Remark("later calls", name, ", ".join(map(str, each))) for name, each in numbers]
        return replace(report, notes=(*report.notes, *compared, *self._unjudged))

    def map(self, name: str, index: tuple[int, ...]) -> ErrorMap:
        """The error over one slice of an output. Raises BadInput if its tensors are not in memory."""
        if name not in self.pairs:
            raise BadInput(f"the worker holds no tensors of {name}", hint="compare again, then look into it")
        return error_map(name, *self.pairs[name], index)

    def owner(self, launch: int) -> AttributionResult:
        """Attribute the error of one of the report's kernels. Raises BadInput if that is not possible."""
        before = 0
        for comparison, report in zip(self.comparisons, self.reports, strict=True):
            if launch - before < len(report.kernels):
                with original_torch_compile():
                    found = comparison.owner(report, launch - before)
                return replaced(found, verdict=_moved(found.verdict, before))
            before += len(report.kernels)
        raise BadInput("the comparison has no such kernel", hint="compare its kernels again (D)")

    def _side_began(self, side: str) -> None:
        self.emit(events.SideStarted(run=self.run.number, side=side))

    def _so_far(self, report: DiffReport) -> None:
        for side in report.sides[self._ended :]:
            self.emit(events.SideEnded(run=self.run.number, side=side))
        self._ended = len(report.sides)
        if report.outputs or report.gradients:  # a side may yet hang, or take this process with it
            self._tell([*self.reports, self._named(report)], ended=not self._prefix)

    def _tell(self, reports: list[DiffReport], ended: bool = True) -> None:
        whole = merged(reports)
        if not ended and whole.verdict in ("passed", "empty"):  # the script may yet compile other functions
            whole = replace(whole, verdict="waiting")
        kernels = tuple(_in_runs_code(whole.kernels, self.run.codes))
        report = sayable(replace(whole, kernels=kernels, births=_births_in_runs_code(whole, kernels)))
        if report != self._emitted:
            self._emitted = report
            self.emit(events.Compared(run=self.run.number, report=report))

    def _named(self, report: DiffReport) -> DiffReport:
        """The report with the function's name before that of each output and gradient."""
        if not self._prefix:
            return report

        def named(diffs: tuple[TensorDiff, ...]) -> tuple[TensorDiff, ...]:
            return tuple(replace(diff, name=self._prefix + diff.name) for diff in diffs)

        outputs, gradients = named(report.outputs), named(report.gradients)
        notes = (
            *report.notes,
            Remark("first calls"),
            *([Remark("all outputs")] if self.comparisons[-1].backward else []),
        )
        stages_of = self._prefix.removesuffix(": ")
        return replace(report, outputs=outputs, gradients=gradients, stages_of=stages_of, notes=notes)

    def _unique(self, name: str) -> str:
        """The function's name, numbered from its second comparison on: of another one, or with gradients."""
        self._compared[name] += 1
        return name if self._compared[name] == 1 else f"{name} {self._compared[name]}"


def _moved(owner: KernelAttribution, by: int) -> KernelAttribution:
    """The verdict of one comparison's launch, in the report of them all."""
    return replace(owner, launch=owner.launch + by, cause=None if owner.cause is None else owner.cause + by)


def _in_runs_code(
    kernels: Iterable[KernelError], codes: Mapping[tuple[str, Part], OutputCode]
) -> Iterator[KernelError]:
    """The launches at their lines in the run's own code: to be observed it was compiled again, as one function, and its
    lines are others there. 0 where the run's code has no such launch.
    """
    for kernel in kernels:
        code = codes.get((kernel.frame, kernel.part))
        if code is None or not kernel.is_launch:
            yield kernel
            continue
        calls = [call for one in code.kernels if one.name == kernel.name for call in one.calls]
        line = next((call.line for call in calls if kernel.handle and call.handle == kernel.handle), 0)
        yield replace(kernel, wrapper_line=line)


def _births_in_runs_code(report: DiffReport, kernels: Sequence[KernelError]) -> tuple[NanOrigin, ...] | None:
    """The births in kernels at these launches' lines."""
    if report.births is None:
        return None
    lines = {
        (kernel.frame, kernel.part, kernel.wrapper_line): moved.wrapper_line
        for kernel, moved in zip(report.kernels, kernels, strict=True)
    }
    return tuple(
        replace(birth, wrapper_line=lines.get((birth.frame, birth.part, birth.wrapper_line), 0))
        for birth in report.births
    )


def _worst_steps(reports: list[DiffReport]) -> TrainingSteps | None:
    """Of the functions of a script that train, the first that parts; of several that do not, the first."""
    steps = [report.steps for report in reports if report.steps is not None]
    return min(steps, key=lambda one: _TRAINED_WORST_FIRST.index(one.verdict), default=None)


def merged(reports: list[DiffReport]) -> DiffReport:
    """The comparisons of a program's functions as one; the worst verdict is that of all."""
    if len(reports) == 1:
        return reports[0]
    worst = min((report.verdict for report in reports), key=_WORST_FIRST.index)
    kernels = tuple(chain.from_iterable(report.kernels for report in reports))
    stages = [report for report in reports if report.stages] or reports
    least = min(stages, key=lambda report: sum(stage.judged for stage in report.stages))
    located = next((report for report in reports if report.first_wrong_stage is not None), least)
    hidden = [(each.stages_of, each.unknown_stages) for each in stages if each is not located]
    unjudged = [Remark("stages not judged", name, rows[-1].reason) for name, rows in hidden if rows]
    return replace(
        reports[0],
        verdict=worst,
        mode=max((report.mode for report in reports), key=get_args(Mode).index),
        float64_missing=next((report.float64_missing for report in reports if report.float64_missing), ""),
        float64_elsewhere=next((each for report in reports if (each := report.float64_elsewhere)), None),
        outputs=tuple(chain.from_iterable(report.outputs for report in reports)),
        gradients=tuple(chain.from_iterable(report.gradients for report in reports)),
        kernels=kernels,
        stages=located.stages,
        stages_of=located.stages_of,
        first_bad_kernel=next((place for place, kernel in enumerate(kernels) if kernel.bad), None),
        sides=tuple(chain.from_iterable(report.sides for report in sorted(reports, key=_raises_on_both_sides))),
        births=_all_births(reports),
        variance=tuple(chain.from_iterable(report.variance for report in reports)),
        steps=_worst_steps(reports),
        not_comparable=next(
            (report.not_comparable for report in reports if report.not_comparable and worst == "waiting"), ""
        ),
        notes=tuple(dict.fromkeys(chain(*(report.notes for report in reports), unjudged))),
    )


def _raises_on_both_sides(report: DiffReport) -> bool:
    """False of one that is wrong as one side raises: its sides come first, where the verdict looks for them."""
    return report.raises_alone is None


def _all_births(reports: list[DiffReport]) -> tuple[NanOrigin, ...] | None:
    searched = [report.births for report in reports if report.births is not None]
    return tuple(chain.from_iterable(searched)) if searched else None
