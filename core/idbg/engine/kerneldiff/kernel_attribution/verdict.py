"""Decide what causes a launch's error, from its isolated calls, its value in the run, and its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from idbg.engine.kerneldiff.kernel_attribution.isolated import IsolatedResult
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.engine.kerneldiff.kernel_attribution.recorder import RETURN, Overwritten
from idbg.engine.kerneldiff.kernel_attribution.replay import CALLS
from idbg.engine.kerneldiff.tensors.allowance import epsilon
from idbg.format.amounts import figure
from idbg.schema.attribution import AttributionKind, KernelAttribution, StageError
from idbg.schema.diff import LARGEST, DiffReport, KernelError, launch_name

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
    kind, sentence, other = _decided(evidence, worst)
    error = evidence.error
    verdict = KernelAttribution(
        launch=evidence.launch, name=error.name, handle=error.handle, kind=kind, sentence=sentence, cause=other
    )
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
    error = report.kernels[launch]
    sentence = _unknown(launch_name(error, report.kernels), why)
    return KernelAttribution(launch=launch, name=error.name, handle=error.handle, kind="unjudged", sentence=sentence)


def _unknown(name: str, why: str) -> str:
    return f"whose error {name} has is not known: {why}"


Decided = tuple[AttributionKind, str, int | None]


def _decided(evidence: Evidence, worst: IsolatedResult | None) -> Decided:
    error = evidence.error
    name = launch_name(error, evidence.kernels)
    if worst is None:
        why = next(iter(evidence.reasons), error.reason or "none of its buffers holds a node's value")
        return "unjudged", _unknown(name, why), None
    if worst.bad:
        return "compiler", _compilers(name, worst) + _of_a_step(evidence), None
    alone = f"alone, on what it was called with, {name} is right ({_figures(worst)})"
    for before in (_changed(evidence), _run_differs(evidence, worst), _earlier(evidence)):
        if before is not None:
            what, other = before
            return "before", f"what came before: {alone}, but {what}", other
    if (stage := evidence.wrong_graph) is not None:
        at = f": `{stage.node}`" if stage.node else ""
        return "graph", f"the graph's: {alone}; its graph is wrong since {stage.stage.replace('_', '-')}{at}", None
    if (sentence := _imprecise(error, worst)) is not None:
        return "precision", f"the precision's: {alone}, and {sentence}", None
    if error.bad:
        again = f"{alone}, and it was right as the program ran again: what the comparison saw has not come again"
        return "unjudged", _unknown(name, again), None
    return "nobody", f"nobody's: {alone}, and right in the run", None


def _figures(one: IsolatedResult) -> str:
    worst = one.worst
    return f"its relative error against float64 is {figure(worst.error.rmse)}, eager's {figure(worst.eager.rmse)}"


def _compilers(name: str, worst: IsolatedResult) -> str:
    where = f"{worst.buffer.name} ({worst.buffer.node})"
    wrong = f"called alone on its own inputs {name} is wrong: {_figures(worst)}, in {where}"
    if worst.leftover:
        return (
            f"the compiler's: {wrong}; what it gives depends on what was in its memory before: it leaves some of it "
            "unwritten, or reads what nobody wrote"
        )
    if worst.varies:
        right = sum(call.excess <= 1 for call in worst.calls)
        often = f"; {right} of {len(worst.calls)} calls were right" if right else ""
        return f"the compiler's: {wrong}; the same call gives something else each time, as a race does{often}"
    return f"the compiler's: {wrong}"


def _of_a_step(evidence: Evidence) -> str:
    """Names another launch that may be the cause: one that wrote an intermediate value that cannot be judged alone."""
    for name, by in evidence.plan.steps.items():
        return (
            f"; or that of {_launch(evidence, by)}: it wrote {name}, a step inside of a node, and the two are one here"
        )
    return ""


def _changed(evidence: Evidence) -> tuple[str, int | None] | None:
    """A buffer that it reads or wrote was overwritten."""
    if not evidence.overwritten:
        return None
    one = evidence.overwritten[0]
    launches = evidence.plan.wrapper.launches
    made = f"as {_launch(evidence, one.writer)} left it" if one.writer >= 0 else "as the graph was given it"
    if one.writer == evidence.plan.number:
        reader = "the graph returned it" if one.reader == RETURN else f"{_launch(evidence, one.reader)} read it"
        what = f"{one.name}, which it wrote, was no longer as it left it when {reader}"
    else:
        what = f"{one.name}, which it reads, was no longer {made}"
    if one.by is None:
        line = launches[one.after].line if one.after >= 0 else evidence.plan.wrapper.function.lineno
        end = "the return" if one.until == RETURN else f"line {launches[one.until].line}"
        return f"{what}: the wrapper itself changed it, between line {line} and {end}", None
    by = _launch(evidence, one.by)
    how = f"wrote over it: {_why_shared(evidence, one)}" if one.shares else "wrote outside of its own memory, over it"
    return f"{what}: {by} {how}", evidence.at.get(one.by)


def _why_shared(evidence: Evidence, one: Overwritten) -> str:
    """The line of the wrapper that gave a launch memory that was still in use."""
    assert one.by is not None
    wrapper = evidence.plan.wrapper
    for name in wrapper.launches[one.by].names:
        base, seen = wrapper.bases.get(name, ""), {name}
        while base and base not in seen:
            if base == one.name or base == wrapper.bases.get(one.name):
                return f"{name} was given its memory too early ({name} = {base}  # reuse)"
            seen.add(base)
            base = wrapper.bases.get(base, "")
    return "its arguments share memory with it"


def _launch(evidence: Evidence, number: int) -> str:
    launch = evidence.plan.wrapper.launches[number]
    at = evidence.at.get(number)
    name = launch_name(evidence.kernels[at], evidence.kernels) if at is not None else launch.handle or launch.name
    return f"{name} (line {launch.line})"


def _run_differs(evidence: Evidence, worst: IsolatedResult) -> tuple[str, int | None] | None:
    if worst.run.excess <= 1:
        return None
    return (
        f"in the run it left something else in {worst.buffer.name} (relative error {figure(worst.run.error.rmse)}): "
        "another launch was still running, or its memory is in use elsewhere",
        None,
    )


def _earlier(evidence: Evidence) -> tuple[str, int | None] | None:
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
        return f"what it reads is already wrong: {launch_name(kernels[other], kernels)} before it is bad", other
    parts = {(kernel.frame, kernel.part): at for at, kernel in reversed(list(enumerate(kernels)))}
    first = parts[evidence.error.frame, evidence.error.part]
    far = evidence.error.error or 0.0
    other = next((at for at in range(first) if kernels[at].bad), None)
    if other is None or far <= 2 * (evidence.worst.worst.error.rmse if evidence.worst else 0.0):
        return None
    return (
        f"what its graph was called with is already wrong: {launch_name(kernels[other], kernels)} before it is bad",
        other,
    )


def _imprecise(error: KernelError, worst: IsolatedResult) -> str | None:
    """Eager's error is as large, and it is large."""
    far = _FAR * epsilon(worst.reference.own.dtype)
    if worst.worst.error.rmse > far:
        return "eager's own is as far: what its nodes compute loses that much in this dtype"
    if error.error is not None and error.eager_error is not None and far < error.error <= 3 * error.eager_error:
        return (
            f"what had gathered by then (relative error {figure(error.error)}) eager's has too "
            f"({figure(error.eager_error)})"
        )
    return None
