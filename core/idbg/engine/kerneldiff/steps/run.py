"""Train the test, the reference and float64 for N steps, and report where the test diverges."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from idbg.engine.failures.describe import failure_of
from idbg.engine.kerneldiff.float64.mode import float64_failure
from idbg.engine.kerneldiff.float64.rounding import SAMPLES
from idbg.engine.kerneldiff.sides.resampling import ROUNDED, TRACED
from idbg.engine.kerneldiff.sides.run import Call
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.steps.training import RATE, Rows, StepFailed, Training, TrainingSide
from idbg.engine.kerneldiff.steps.verdict import StepJudge, amplification, first, shown_distances, unjudged_from
from idbg.schema.diff import DiffReport, Outcome
from idbg.schema.programs import Program
from idbg.schema.remarks import Remark
from idbg.schema.steps import StepDistance, Trained, TrainingSteps

_NOTHING = Remark("nothing changes")
_SKIPPED = Remark("steps skipped")

_WORSE: Final[dict[Trained, Outcome | None]] = {
    "passed": None,
    "failed": "failed",
    "error": "error",
    "unjudged": "waiting",
}


@dataclass(frozen=True)
class Compiler:
    """The test side: its name, how it compiles, and Inductor's options for it."""

    name: str
    compile: Callable[[Call], Call]
    options: Mapping[str, Any] = field(default_factory=dict)


def trained(
    subject: Subject, test: Compiler, count: int, backward: bool, k: float, begin: Callable[[str], None]
) -> TrainingSteps:
    """Take `count` steps on every side, and judge them. `begin` is called with each. Exceptions are in the result."""
    return _Run(subject, test, count, backward, k, begin).run()


def with_steps(report: DiffReport, train: Callable[[], TrainingSteps]) -> DiffReport:
    """The report of one call with the training's; the worse verdict is the report's."""
    if report.verdict == "error" or report.not_comparable:
        return report
    steps = train()
    verdict = _WORSE[steps.verdict] if report.verdict in ("passed", "empty") else report.verdict
    return replace(report, steps=steps, verdict=verdict or report.verdict)


@dataclass
class _Run:
    subject: Subject
    test: Compiler
    count: int
    backward: bool
    k: float
    begin: Callable[[str], None]
    _rows: list[Rows] = field(default_factory=list)

    def run(self) -> TrainingSteps:
        """Judged against float64; if that cannot run, against eager."""
        try:
            return self._run(in_float64=True)
        except StepFailed as failed:
            if failed.side not in ("float64", "moved"):
                return self._failed(failed)
            missing = float64_failure(failed.__cause__ or failed)
        try:
            return replace(self._run(in_float64=False), reason=Remark("without float64", detail=missing))
        except StepFailed as failed:
            return self._failed(failed)

    def _run(self, *, in_float64: bool) -> TrainingSteps:
        self._rows = []
        self.begin(f"step 1 of {self.count}")
        with self.subject.restored():
            training = Training(self.subject, backward=self.backward)
            truth = training.float64() if in_float64 else training.eager()
            reference = training.eager() if in_float64 else training.rounded(0)
            sensitivity = training.float64(training.moved) if in_float64 else training.rounded(1)
            test = training.compiled(self.test.name, self.test.compile, self.test.options)
            self._take(training, truth, [reference, sensitivity, test])
        judge = StepJudge(test.name, reference.name, sensitivity.name, self.k)
        if not any(self._is_moved(rows, reference.name) for rows in self._rows):
            reason = _SKIPPED if training.skipped == self.count else _NOTHING
            return TrainingSteps(requested=self.count, verdict="unjudged", by_us=training.by_us, reason=reason)
        amplified = [amplification(rows, "moved", training.moved) if in_float64 else None for rows in self._rows]
        steps = _judged(judge, self._rows, amplified)
        if any(each.failed for step in steps for each in step):
            samples = (*self._sampled(in_float64), *self._optimizer_noise())
            again = dataclasses.replace(judge, samples=samples, few=bool(self.subject.optimizers))
            steps = _judged(again, self._rows, amplified)
        return self._result(steps, training, truth, amplified[-1])

    def _take(self, training: Training, truth: TrainingSide, others: list[TrainingSide]) -> None:
        for step, rows in enumerate(training.steps(self.count, truth, others), 1):
            self._rows.append(rows)
            if step < self.count:
                self.begin(f"step {step + 1} of {self.count}")

    def _sampled(self, in_float64: bool) -> tuple[str, ...]:
        """The same steps by eager with perturbed roundings; adds its distances to the others'."""
        self.begin(ROUNDED)
        with self.subject.restored():
            training = Training(self.subject, backward=self.backward)
            truth = training.float64() if in_float64 else training.eager()
            others = [training.rounded(seed + 2) for seed in range(SAMPLES)]
            return self._joined(training, truth, others)

    def _optimizer_noise(self) -> tuple[str, ...]:
        """How far rounding moves what Dynamo traced; see `TracedProgram`."""
        if not self.subject.optimizers:
            return ()
        self.begin(TRACED)
        with self.subject.restored():
            training = Training(self.subject, backward=self.backward)
            truth, *others = training.traced()
            return self._joined(training, truth, others)

    def _joined(self, training: Training, truth: TrainingSide, others: list[TrainingSide]) -> tuple[str, ...]:
        """Take the steps of these sides, and add their distances. Returns the names of these sides."""
        try:
            for rows, more in zip(self._rows, training.steps(self.count, truth, others), strict=False):
                for name, row in more.items():
                    if name in rows:
                        rows[name].far |= row.far
        except StepFailed:  # without these samples the first judgement stands
            return ()
        return tuple(side.name for side in others)

    def _is_moved(self, rows: Rows, side: str) -> bool:
        return any(side not in row.unmoved for row in rows.values() if row.kind in ("parameter", "buffer"))

    def _result(
        self, steps: list[list[StepDistance]], training: Training, truth: TrainingSide, amplified: float | None
    ) -> TrainingSteps:
        parted, where, others = next((found for step in steps if (found := first(step))[0]), (None, "", 0))
        unjudged = unjudged_from(steps)
        verdict: Trained = "failed" if parted else "unjudged" if unjudged == 1 else "passed"
        return TrainingSteps(
            requested=self.count,
            verdict=verdict,
            taken=len(steps),
            by_us=training.by_us,
            rate=RATE if training.by_us else 0.0,
            truth=truth.name,
            parted=parted,
            where=where,
            others=others,
            tensors=len(steps[0]) if steps else 0,
            amplified=amplified,
            unjudged_from=unjudged,
            distances=shown_distances(steps, parted),
        )

    def _failed(self, failed: StepFailed) -> TrainingSteps:
        cause = failed.__cause__ or failed
        backend = self.test.name if failed.side == self.test.name else ""
        return TrainingSteps(
            requested=self.count,
            verdict="error",
            taken=failed.step - 1,
            failed_side=failed.side,
            failure=failure_of(cause, Program(""), backend),
        )


def _judged(judge: StepJudge, rows: list[Rows], amplified: list[float | None]) -> list[list[StepDistance]]:
    return [judge.judged(step, one, much) for step, (one, much) in enumerate(zip(rows, amplified, strict=True), 1)]
