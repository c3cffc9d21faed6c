"""Records of a training: at which step two sides diverge, and where.

Distances are relative RMSEs to the training in float64 (RMSE / RMS of float64's values). Nothing here imports torch.
"""

from typing import Literal

import msgspec

from idbg.schema.programs import Failure
from idbg.schema.remarks import Remark

Kind = Literal[
    "output",  # what the step gives: its loss
    "buffer",  # what the forward writes
    "gradient",
    "moment",  # what the optimizer keeps of each parameter
    "parameter",
]
KINDS: tuple[Kind, ...] = ("output", "buffer", "gradient", "moment", "parameter")
"""In the order in which a step makes them."""

Where = Literal["forward", "backward", "optimizer", ""]
"""The part of a step that is wrong; "" where that is not known."""

Trained = Literal["passed", "failed", "error", "unjudged"]


class StepDistance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tensor after one step (from 1): how far the test, the reference and a float64 that began a rounding away
    (`sensitivity`) are from float64. `reference` and `sensitivity` are None where there is no such tensor.

    `allowed` is what the test's may be; None where it is not judged, as the reference itself is no nearer.
    `unmoved`: it is, to the bit, what it was before the first step, and the reference's is not.
    """

    step: int
    tensor: str
    kind: Kind
    test: float
    reference: float | None = None
    sensitivity: float | None = None
    allowed: float | None = None
    failed: bool = False
    unmoved: bool = False


class TrainingSteps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A training of `requested` steps by each side, from the same state; `taken` by all of them.

    `by_us`: the program has no step of its own: a step is the backward of its loss, then plain SGD of `rate`. `parted`
    is where the test parts first, `where` the part of the step that made it, `others` how many tensors failed at that
    step beside it. `distances` are those of the tensors that came nearest to what is allowed, step by step; `tensors`
    were compared. `amplified`: how many times as far as it began the float64 that began elsewhere is at last.
    `unjudged_from` is the first step that cannot be judged any more. `reason` says why it was not run, or not
    judged; `failure` is a side's, which is `failed_side`.
    """

    requested: int = msgspec.field(name="asked")
    verdict: Trained
    taken: int = 0
    by_us: bool = False
    rate: float = 0.0
    truth: str = "float64"
    parted: StepDistance | None = None
    where: Where = ""
    others: int = 0
    tensors: int = 0
    amplified: float | None = None
    unjudged_from: int | None = None
    reason: Remark | str = ""
    failed_side: str = ""
    failure: Failure | None = None
    distances: tuple[StepDistance, ...] = ()
