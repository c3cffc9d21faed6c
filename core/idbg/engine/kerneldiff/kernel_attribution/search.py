"""Attribute the error of one launch: run the program again, record the launch, and replay it alone.

The code that was compiled to observe the kernels runs unchanged; it is compiled again only where torch has dropped it.
"""

import dataclasses
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import cast

from msgspec.structs import replace

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.kernel_attribution.isolated import IsolatedResult, judge_isolated
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan, plan_launch
from idbg.engine.kerneldiff.kernel_attribution.recorder import LaunchRecorder, RecordedLaunch
from idbg.engine.kerneldiff.kernel_attribution.replay import replay
from idbg.engine.kerneldiff.kernel_attribution.verdict import Evidence, attribute, unjudged
from idbg.engine.kerneldiff.kernels.chains import completed_by
from idbg.engine.kerneldiff.kernels.observe import Observation, observing
from idbg.engine.kerneldiff.kernels.watch import Watch
from idbg.engine.kerneldiff.request import ComparisonRequest
from idbg.engine.kerneldiff.sides.run import Call, Side, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.captured import CompileRecord
from idbg.schema.attribution import AttributionFinding, KernelAttribution
from idbg.schema.diff import DiffReport, KernelError
from idbg.schema.errors import BadInput, first_line


@dataclass(frozen=True)
class AttributionResult:
    """The verdict of a launch, and what its script is written from; `plan` is None if the launch was not recorded."""

    verdict: KernelAttribution
    error: KernelError
    plan: LaunchPlan | None = None
    recorded: RecordedLaunch | None = None
    isolated: tuple[IsolatedResult, ...] = ()


@dataclass
class AttributionSearch:
    """Attributes the errors of the launches of one comparison."""

    request: ComparisonRequest
    subject: Subject
    observed: CompileRecord
    backward: bool
    newer: list[Watch] = field(default_factory=list)

    def find(self, report: DiffReport, launch: int) -> AttributionResult:
        """The attribution of this one of the report's kernels. Raises BadInput if the program cannot run again."""
        began = time.perf_counter()
        watch, number = self.observed.launches[launch]
        if number >= len(watch.wrapper.launches):
            return self._unjudged(report, launch, "it runs inside of a branch or a loop, which is not taken apart")
        plan = plan_launch(watch, number)
        if not plan.writes:
            return self._of_a_step(report, launch, watch, number)
        plan, recorded = self._record(plan)
        if recorded.problem or not recorded.ran:
            return self._unjudged(report, launch, recorded.problem or "it did not run, as the program ran again")
        try:
            calls = replay(plan, recorded)
        except (RuntimeError, TypeError, ValueError) as error:
            return self._unjudged(report, launch, f"it fails alone: {first_line(error)}")
        finding, reasons = judge_isolated(plan, recorded, calls)
        launches = self.observed.launches
        at = {place: index for index, (other, place) in enumerate(launches) if other is watch}
        changed = recorded.overwritten
        if any(each.by is None for each in changed):  # who did it shows where all are looked at after each launch
            changed = self._record(plan, closely=True)[1].overwritten or changed
        evidence = Evidence(report, launch, plan, finding, reasons, changed, at)
        verdict = attribute(evidence, time.perf_counter() - began)
        return AttributionResult(verdict, report.kernels[launch], plan, recorded, tuple(finding))

    def _of_a_step(self, report: DiffReport, launch: int, watch: Watch, number: int) -> AttributionResult:
        """For a launch that completes no node: the attribution of the launch that completes it."""
        chain = completed_by(watch.wrapper, watch.results).get(number)
        if chain is None:
            return self._unjudged(report, launch, "its buffers hold steps inside of a node, not a node's value")
        last, output = chain
        finding = self.find(report, self.observed.launches.index((watch, last)))
        error = report.kernels[launch]
        step = AttributionFinding("step of a node", launch=finding.error.name, node=output.buffer.node)
        findings = (step, *finding.verdict.findings)
        verdict = replace(finding.verdict, launch=launch, name=error.name, handle=error.handle, findings=findings)
        return dataclasses.replace(finding, verdict=verdict)

    def _unjudged(self, report: DiffReport, launch: int, why: str) -> AttributionResult:
        return AttributionResult(unjudged(report, launch, why), report.kernels[launch])

    def _record(self, plan: LaunchPlan, *, closely: bool = False) -> tuple[LaunchPlan, RecordedLaunch]:
        """Record the launch, and return its plan: for the code that torch compiled anew, if it had to."""
        plan = self._newest(plan)
        recorder = LaunchRecorder(plan, closely=closely)
        with recorder.recording():
            side, compiled = self._run()
        if compiled and not recorder.recorded.ran:
            self.newer = compiled
            plan = self._newest(plan)
            recorder = LaunchRecorder(plan, closely=closely)
            with recorder.recording():
                side, _ = self._run()
        self._check(side, recorder.recorded)
        return plan, recorder.recorded

    def _newest(self, plan: LaunchPlan) -> LaunchPlan:
        """The plan of the same launch in the newest compiled code."""
        if not self.newer or plan.watch in self.newer:
            return plan
        for watch in self.newer:
            same = watch.graph.part == plan.watch.graph.part and len(watch.wrapper.launches) > plan.number
            if same and watch.wrapper.launches[plan.number].text == plan.launch.text:
                return plan_launch(watch, plan.number)
        raise BadInput("what torch compiled again has no such launch", hint="compare its kernels again (D)")

    def _check(self, side: Side, recorded: RecordedLaunch) -> None:
        if side.result.failure is not None and not recorded.ran:
            why = side.result.failure.first_line
            raise BadInput(f"the program failed as it ran again: {why}", hint="compare its kernels again (D)")

    def _run(self) -> tuple[Side, list[Watch]]:
        """Run the compiled model once more; also returns what torch compiled meanwhile."""
        call = cast("Call", self.observed.call)
        compiled = Observation()

        def around(stack: ExitStack) -> Call:
            nonlocal compiled
            stack.enter_context(comparing.random_as_eager())
            compiled = stack.enter_context(observing())
            return call

        with comparing.inductor_set(self.request.options), uncaptured():
            side = run_side("owner", self.subject, around, self.backward)
        return side, compiled.watches
