"""Describe at which step of a training two sides diverge, and where: the sentence and the curve."""

from collections.abc import Sequence

from idbg.format.amounts import counted, figure
from idbg.schema.programs import Verdict
from idbg.schema.steps import StepDistance, Trained, TrainingSteps, Where
from idbg.views import remarks

LOOKS: dict[Trained, Verdict] = {"passed": "clean", "failed": "wrong", "error": "wrong", "unjudged": "waiting"}
"""Which verdict's sign and colours a training has."""
AMPLIFIED = 10.0  # times as far: below that nobody would call a training unstable
HEADS = ("step", "test", "eager", "sensitivity", "allowed")
_WRONG: dict[Where, str] = {
    "forward": "the forward is wrong",
    "backward": "the backward is wrong: what the forward gives is right",
    "optimizer": "the optimizer's step is wrong: the gradients are right",
    "": "the backward or the optimizer is wrong: the step leaves no gradients to look at",
}


def sentence(steps: TrainingSteps, test: str) -> str:
    """Whether the test's training goes with float64's as far as eager's does, at which step it parts, and where."""
    if steps.verdict == "error":
        who, at = steps.failed_side or test, f"step {steps.taken + 1} of {steps.requested}"
        why = steps.failure.first_line if steps.failure else "no reason is known"
        return f"{who} failed at {at}: {why}"
    if steps.verdict == "unjudged":
        return f"the training was not judged: {remarks.sentence(steps.reason) or _beyond(steps)}"
    parts = [_parted(steps, test) if steps.parted else _together(steps, test)]
    if (steps.amplified or 0.0) > AMPLIFIED:
        parts.append(
            "the training is unstable by itself: float64 that begins a rounding away is "
            f"{steps.amplified:,.0f} times as far after {counted(steps.taken, 'step')}"
        )
    if steps.unjudged_from is not None:
        parts.append(_beyond(steps))
    if steps.by_us:
        parts.append(f"a step is a backward and plain SGD of {steps.rate:g}, as the program has none of its own")
    if steps.reason:
        parts.append(remarks.sentence(steps.reason))
    return "; ".join(parts)


def _together(steps: TrainingSteps, test: str) -> str:
    last = steps.unjudged_from - 1 if steps.unjudged_from is not None else steps.taken
    curve = shown(steps)
    nearest = f", {_far(curve[-1], test, steps)}" if curve else ""
    return f"{test} and eager train alike for {counted(last, 'step')}{nearest}"


def _parted(steps: TrainingSteps, test: str) -> str:
    parted = steps.parted
    assert parted is not None
    at = f"{test} parts from eager at step {parted.step} of {steps.requested}"
    if parted.unmoved:
        what = f"{at}: `{parted.tensor}` is as it was before the first step, and in eager it is not"
    else:
        what = f"{at}: {_far(parted, test, steps)} (allowed {figure(parted.allowed)})"
    others = f", and {counted(steps.others, 'other tensor')} with it" if steps.others else ""
    return f"{what}{others}; {_wrong(steps, parted)}"


def _wrong(steps: TrainingSteps, parted: StepDistance) -> str:
    if parted.kind == "buffer":
        return "what the forward writes is lost or wrong"
    return _WRONG[steps.where]


def _far(distance: StepDistance, test: str, steps: TrainingSteps) -> str:
    """How far the tensor is in each side's training."""
    of = "float64" if steps.truth == "float64" else steps.truth
    eager = "eager" if of == "float64" else "eager rounded otherwise"
    own = "float64 begun a rounding away" if of == "float64" else "once more"
    return (
        f"`{distance.tensor}` is {figure(distance.test)} of its size from {of}, "
        f"{eager} {figure(distance.reference)}, {own} {figure(distance.sensitivity)}"
    )


def _beyond(steps: TrainingSteps) -> str:
    """Why steps are not judged from one on."""
    return (
        f"steps from {steps.unjudged_from} on are not judged: eager itself is no nearer to float64, or values are "
        "beyond what float32 holds"
    )


def shown(steps: TrainingSteps) -> Sequence[StepDistance]:
    """The curve that is worth a look: of the tensor that parts, else of the one nearest to what is allowed."""
    if steps.parted is not None:
        return curve(steps, steps.parted.tensor)
    judged = [each for each in steps.distances if each.allowed]
    if not judged:
        return ()
    nearest = max(judged, key=lambda each: each.test / (each.allowed or 1.0))
    return curve(steps, nearest.tensor)


def curve(steps: TrainingSteps, tensor: str) -> Sequence[StepDistance]:
    """The distances of one tensor, step by step."""
    return tuple(each for each in steps.distances if each.tensor == tensor)
