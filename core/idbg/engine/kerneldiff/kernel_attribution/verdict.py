"""Decide what causes a launch's error, from its isolated calls, its value in the run, and its nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.engine.kerneldiff.kernel_attribution.isolated import IsolatedResult
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.engine.kerneldiff.kernel_attribution.recorder import RETURN, Overwritten
from idbg.engine.kerneldiff.kernel_attribution.replay import CALLS
from idbg.engine.kerneldiff.tensors.allowance import epsilon
from idbg.schema.attribution import (
    AttributionFinding,
    AttributionFindingKind,
    AttributionKind,
    KernelAttribution,
    StageError,
)
from idbg.schema.diff import LARGEST, DiffReport, KernelError, launch_name
from idbg.schema.remarks import Remark

_FAR = 64  # ulps: an error that a user may ask about; rounding of one op or a few is below


@dataclass(frozen=True)
class Evidence:
    """Everything known of one launch, at this place among the report's kernels. `at`: the places there of its wrapper's
    launches.
    """

    report: DiffReport
    launch: int
    plan: LaunchPlan
    found: Sequence[IsolatedResult]
    reasons: Sequence[str] = ()
    overwritten: Sequence[Overwritten] = ()
    at: dict[int, int] = field(default_factory=dict)

    @property
    def kernels(self) -> Sequence[KernelError]:
        return self.report.kernels

    @property
    def wrong_graph(self) -> StageError | None:
        """The first stage at which the graph was wrong before it was compiled."""
        bad = (stage for stage in self.report.stages if stage.bad and stage.stage != "kernels")
        frame, part = self.error.frame, self.error.part
        return next((stage for stage in bad if stage.frame in ("", frame) and stage.part in ("", part)), None)

    @property
    def error(self) -> KernelError:
        """The launch as the comparison observed it."""
        return self.kernels[self.launch]

    @property
    def worst(self) -> IsolatedResult | None:
        """The buffer that is worst in isolation; if none is wrong, the one that is worst in the run."""
        if not self.found:
            return None
        by_excess = max(self.found, key=lambda one: one.worst.excess)
        if by_excess.bad:
            return by_excess
        return max(self.found, key=lambda one: (one.run.excess, one.worst.error.rmse))


def attribute(evidence: Evidence, seconds: float | None = None) -> KernelAttribution:
    """The verdict, without a script yet."""
    worst = evidence.worst
    kind, findings, other = _decided(evidence, worst)
    verdict = _verdict(evidence.report, evidence.launch, kind, findings, other)
    if worst is None:
        return verdict
    return replace(
        verdict,
        calls=CALLS,
        seconds=seconds,
        buffer=worst.buffer.name,
        node=worst.buffer.node,
        error=min(worst.worst.error.rmse, LARGEST),  # JSON has no infinity
        eager_error=min(worst.worst.eager.rmse, LARGEST),
        run_error=min(worst.run.error.rmse, LARGEST),
    )


def unjudged(report: DiffReport, launch: int, why: str) -> KernelAttribution:
    """The verdict of a launch that could not be attributed."""
    return _verdict(report, launch, "unjudged", [AttributionFinding("unknown", detail=why)])


def _verdict(
    report: DiffReport, launch: int, kind: AttributionKind, findings: list[AttributionFinding], cause: int | None = None
) -> KernelAttribution:
    error = report.kernels[launch]
    return KernelAttribution(
        launch=launch,
        name=error.name,
        handle=error.handle,
        kind=kind,
        label=launch_name(error, report.kernels),
        findings=tuple(findings),
        cause=cause,
    )


Decided = tuple[AttributionKind, list[AttributionFinding], int | None]
Found = tuple[list[AttributionFinding], int | None]


def _decided(evidence: Evidence, worst: IsolatedResult | None) -> Decided:
    error = evidence.error
    if worst is None:
        known = error.reason if isinstance(error.reason, str) else ""
        why = next(iter(evidence.reasons), known or "none of its buffers holds a node's value")
        return "unjudged", [AttributionFinding("unknown", detail=why)], None
    if worst.bad:
        return "compiler", [*_compilers(worst), *_of_a_step(evidence)], None
    alone = _with_figures("right alone", worst)
    if (over := _overwrites(error)) is not None:
        return "before", [alone, over], None
    for before in (_changed(evidence), _run_differs(worst), _earlier(evidence)):
        if before is not None:
            findings, other = before
            return "before", [alone, *findings], other
    if (stage := evidence.wrong_graph) is not None:
        kind: AttributionFindingKind = "wrong graph at" if stage.node else "wrong graph"
        return "graph", [alone, AttributionFinding(kind, node=stage.node, detail=stage.stage.replace("_", "-"))], None
    if (imprecise := _imprecise(error, worst)) is not None:
        return "precision", [alone, imprecise], None
    if error.bad:
        return "unjudged", [alone, AttributionFinding("not again")], None
    return "nobody", [alone, AttributionFinding("right in the run")], None


def _with_figures(kind: AttributionFindingKind, one: IsolatedResult) -> AttributionFinding:
    own, eager = (min(each.rmse, LARGEST) for each in (one.worst.error, one.worst.eager))  # JSON has no infinity
    return AttributionFinding(kind, buffer=one.buffer.name, node=one.buffer.node, error=own, eager_error=eager)


def _compilers(worst: IsolatedResult) -> Iterator[AttributionFinding]:
    yield _with_figures("wrong alone", worst)
    if worst.leftover:
        yield AttributionFinding("leftover")
    elif worst.varies:
        yield AttributionFinding("race")
        if right := sum(call.excess <= 1 for call in worst.calls):
            yield AttributionFinding("some calls right", detail=f"{right} of {len(worst.calls)}")


def _of_a_step(evidence: Evidence) -> Iterator[AttributionFinding]:
    """Another launch that may be the cause: one that wrote an intermediate value that cannot be judged alone."""
    for name, by in list(evidence.plan.steps.items())[:1]:
        yield AttributionFinding("or of a step", launch=_launch(evidence, by), buffer=name)


def _changed(evidence: Evidence) -> Found | None:
    """A buffer that it reads or wrote was overwritten."""
    if not evidence.overwritten:
        return None
    one = evidence.overwritten[0]
    if one.writer != evidence.plan.number:
        left = one.writer >= 0
        by = _launch(evidence, one.writer) if left else ""
        what = AttributionFinding("read as left" if left else "read as given", launch=by, buffer=one.name)
    elif one.reader == RETURN:
        what = AttributionFinding("written, returned", buffer=one.name)
    else:
        what = AttributionFinding("written, read", launch=_launch(evidence, one.reader), buffer=one.name)
    if one.by is None:
        launches = evidence.plan.wrapper.launches
        line = launches[one.after].line if one.after >= 0 else evidence.plan.wrapper.function.lineno
        end = "the return" if one.until == RETURN else f"line {launches[one.until].line}"
        return [what, AttributionFinding("by the wrapper", detail=f"{line} and {end}")], None
    return [what, _overwriting(evidence, one, one.by)], evidence.at.get(one.by)


def _overwrites(error: KernelError) -> AttributionFinding | None:
    """What the launch itself wrote over, as the comparison has seen it."""
    how = error.reason
    if not isinstance(how, Remark) or how.kind not in ("reused", "reused, read"):
        return None
    reader = how.by or "the program"
    return AttributionFinding("memory in use", launch=reader, buffer=how.subject, node=str(how.detail))


def _overwriting(evidence: Evidence, one: Overwritten, by: int) -> AttributionFinding:
    """How a launch came to write there: the line of the wrapper that gave it memory that was still in use."""
    launch, wrapper = _launch(evidence, by), evidence.plan.wrapper
    if not one.shares:
        return AttributionFinding("out of bounds", launch=launch)
    for name in wrapper.launches[by].names:
        base, seen = wrapper.bases.get(name, ""), {name}
        while base and base not in seen:
            if base == one.name or base == wrapper.bases.get(one.name):
                return AttributionFinding("by reuse", launch=launch, buffer=name, detail=f"{name} = {base}")
            seen.add(base)
            base = wrapper.bases.get(base, "")
    return AttributionFinding("by sharing", launch=launch)


def _launch(evidence: Evidence, number: int) -> str:
    launch = evidence.plan.wrapper.launches[number]
    at = evidence.at.get(number)
    name = launch_name(evidence.kernels[at], evidence.kernels) if at is not None else launch.handle or launch.name
    return f"{name} (line {launch.line})"


def _run_differs(worst: IsolatedResult) -> Found | None:
    if worst.run.excess <= 1:
        return None
    return [
        AttributionFinding("other in the run", buffer=worst.buffer.name, error=min(worst.run.error.rmse, LARGEST))
    ], None


def _earlier(evidence: Evidence) -> Found | None:
    """An earlier launch is wrong, and this launch reads its results."""
    plan, kernels = evidence.plan, evidence.kernels
    waiting, seen = [plan.number], set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        waiting += [at for name in plan.wrapper.launches[number].takes if (at := plan.writer(name, number)) >= 0]
    own = [evidence.at[number] for number in sorted(seen - {plan.number}) if number in evidence.at]
    other = next((at for at in own if kernels[at].bad), None)
    if other is not None:
        return [AttributionFinding("reads wrong", launch=launch_name(kernels[other], kernels))], other
    parts = {(kernel.frame, kernel.part): at for at, kernel in reversed(list(enumerate(kernels)))}
    first = parts[evidence.error.frame, evidence.error.part]
    far = evidence.error.error or 0.0
    other = next((at for at in range(first) if kernels[at].bad), None)
    if other is None or far <= 2 * (evidence.worst.worst.error.rmse if evidence.worst else 0.0):
        return None
    return [AttributionFinding("called with wrong", launch=launch_name(kernels[other], kernels))], other


def _imprecise(error: KernelError, worst: IsolatedResult) -> AttributionFinding | None:
    """Eager's error is as large, and it is large."""
    far = _FAR * epsilon(worst.reference.own.dtype)
    if worst.worst.error.rmse > far:
        return AttributionFinding("eager as far")
    if error.error is not None and error.eager_error is not None and far < error.error <= 3 * error.eager_error:
        return AttributionFinding("gathered", error=error.error, eager_error=error.eager_error)
    return None
