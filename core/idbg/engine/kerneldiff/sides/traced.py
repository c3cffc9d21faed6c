"""What does a program give whose graphs Dynamo traced, op by op, and how far does rounding move that?

An optimizer computes its factors with Python's numbers in eager, and traced with float32 tensors: of Adam's
1 - beta2**step half of the digits are rounding then. No other rounding of eager's ops shows that. What was traced is
held against itself, rounded otherwise: so a wrong trace explains nothing.
"""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext

import torch
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.float64.rounding import SAMPLES, PerturbedRounding
from idbg.engine.kerneldiff.sides.run import Call, Side, run_side
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import Leaves

TRACED = "traced, rounded otherwise"
# A number below 1 that is moved by half an ulp stays as it is half of the time, and a factor is one number: so further,
# and more often, that none of a hundred parameters' factors is met by no move at all
_TIMES, _OFTEN = 4.0, 2 * SAMPLES


def roundings() -> list[PerturbedRounding | None]:
    """The roundings that the traced graphs are run with: none, and as many others as tell how far they move."""
    return [None, *(PerturbedRounding(seed, _TIMES) for seed in range(_OFTEN))]


class Traced:
    """Compiles nothing: each of Dynamo's graphs runs op by op, rounding as `rounding` says when it is called."""

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


def traced_samples(subject: Subject, eager: Leaves, *, backward: bool) -> list[Leaves]:
    """What eager could have given, had it computed as what was traced does: eager's values, moved as rounding moves
    those of the traced graphs. Empty where these cannot run.
    """
    torch._dynamo.reset()
    traced = Traced()
    model = traced.compiled(subject.model)

    def around(stack: ExitStack) -> Call:
        stack.enter_context(comparing.random_as_eager())
        stack.enter_context(uncaptured())
        return model

    sides: list[Side] = []
    for mode in roundings():
        traced.rounding = mode
        sides.append(run_side(TRACED, subject, around, backward))
    if any(side.given is None for side in sides):
        return []
    own, *others = ({**(side.outputs or {}), **(side.gradients or {})} for side in sides)
    return [{name: _moved(value, own.get(name), other.get(name)) for name, value in eager.items()} for other in others]


def _moved(value: object, own: object, other: object) -> object:
    """`value`, as far away as `other` is from `own`."""
    tensors = [each for each in (value, own, other) if isinstance(each, Tensor) and each.is_floating_point()]
    if len(tensors) < 3 or len({each.shape for each in tensors}) > 1:
        return value
    base, one, another = tensors
    return (base.double() + (another.double() - one.double())).to(base.dtype)
