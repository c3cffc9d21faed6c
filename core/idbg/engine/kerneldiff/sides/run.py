"""What does each side of the comparison give, when all of them start from the same state?"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from idbg.engine.compat import comparing, dynamo, gpu
from idbg.engine.failures import fallbacks
from idbg.engine.failures.describe import failure_of
from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.draws import Draws, generator_position, recorded_draws
from idbg.engine.kerneldiff.float64.mode import Float64, to_float64, usual_dtype
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.float64.undeclared_writes import UndeclaredWrite, WithoutUndeclaredWrites
from idbg.engine.kerneldiff.sides.form import Forms, forms
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.tensors.tree import AFTER, Again, Leaves, leaves, snapshot
from idbg.engine.kerneldiff.tensors.wrapped import parts
from idbg.schema.diff import SideResult, Variance
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program

Call = Callable[..., Any]

_PRIME = 2_654_435_761  # Knuth's multiplier: neighbours get unlike numbers
ROUNDED = "eager, rounded otherwise"
RESEEDED = "eager, from another seed"
UNDONE = "eager without undeclared writes"
_NO_PROGRAM = Program("")


class NothingToDifferentiate(BadInput):
    """No output requires a gradient."""


@dataclass(frozen=True)
class Given:
    """What one run gave: the leaves of its output, its loss, the tensors that it wrote to (`x (after)`); gradients.
    `generators`: where torch's random generators stood after it.
    """

    outputs: Leaves
    gradients: Leaves
    forms: Forms = field(default_factory=dict)
    generators: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Side:
    """`given` is None where it failed: `error` is what it raised. `draws`: what random numbers were drawn (only float64
    knows), and `undeclared` what ops of the program's own wrote to without declaring it. `graphs`: how many graphs the
    side's backend was given (only a compiled side knows).
    """

    result: SideResult
    given: Given | None = None
    error: BaseException | None = None
    variance: tuple[Variance, ...] = ()
    draws: Draws = ()
    undeclared: tuple[UndeclaredWrite, ...] = ()
    graphs: int | None = None

    @property
    def outputs(self) -> Leaves | None:
        """The output's leaves, the loss and what was written to, by name; None where the side failed."""
        return self.given.outputs if self.given else None

    @property
    def gradients(self) -> Leaves | None:
        """`grad(name)` -> the gradient; None where the side failed."""
        return self.given.gradients if self.given else None

    @property
    def forms(self) -> Forms:
        """What outputs are beside their numbers, by name; empty where the side failed."""
        return self.given.forms if self.given else {}

    def notes(self) -> Iterator[str]:
        """What a report says of it as the reference."""
        if self.given is None:
            return
        for name, value in self.given.outputs.items():
            if isinstance(value, Again):
                yield f"{name} is {value.name} again: it is compared once"
        if not self.given.outputs and not self.given.gradients:
            yield "the program returned nothing that could be compared"


def run_eager(subject: Subject, *, backward: bool = False) -> Side:
    """The model as plain Python, also where the program has compiled it."""

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        return subject.model

    return run_side("eager", subject, around, backward)


def run_reseeded(subject: Subject, *, backward: bool = False) -> Side:
    """Eager, with other random numbers."""

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        torch.manual_seed(torch.initial_seed() ^ _PRIME)
        return subject.model

    return run_side(RESEEDED, subject, around, backward)


def run_rounded(subject: Subject, roundings: PerturbedRounding, *, backward: bool = False) -> Side:
    """Eager, with its ops rounding otherwise."""

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(roundings)
        return subject.model

    return run_side(ROUNDED, subject, around, backward)


def run_without_undeclared_writes(subject: Subject, *, backward: bool = False) -> Side:
    """Eager, without what ops of the program's own write to and do not declare."""

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(WithoutUndeclaredWrites())
        return subject.model

    return run_side(UNDONE, subject, around, backward)


def run_compiled(
    name: str,
    subject: Subject,
    compile: Callable[[Call], Call],
    *,
    backward: bool = False,
    runs: int = 1,
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Side:
    """The model as `compile(model)` makes it, from its first call on; run so many times, each `within` this."""
    torch._dynamo.reset()  # no code that an earlier compile left behind
    before = comparing.graphs_compiled()
    compiled: list[Call] = []

    def around(stack: ExitStack) -> Call:
        stack.enter_context(comparing.random_as_eager())
        stack.enter_context(within())
        compiled[:] = compiled or [compile(subject.model)]
        return compiled[0]

    with fallbacks.fallback_messages(name) as told:
        side = run_side(name, subject, around, backward, runs, backend=name)
    if told and side.given is not None:
        return Side(SideResult(name, side.result.seconds, fallbacks.failure(name, told[0])))
    return replace(side, graphs=comparing.graphs_compiled() - before)


def run_float64(subject: Subject, *, backward: bool = False) -> Side:
    """The model run op by op, with floating arithmetic in float64."""
    tensors = list(subject.tensors.values())
    mode = Float64(usual_dtype(tensors), subject.lent())

    def around(stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(float64_copies(subject.lent()))
        stack.enter_context(mode)
        return subject.model

    side = run_side("float64", subject, around, backward)
    given = side.given and replace(side.given, forms={})  # nothing lies where the program has it
    undeclared = tuple(sorted(mode.undeclared, key=lambda write: (write.op, write.argument)))
    return replace(side, given=given, draws=tuple(mode.draws), undeclared=undeclared)


def eagers_draws(subject: Subject, *, backward: bool = False) -> Draws | None:
    """What random numbers the program draws in eager; None where it fails."""
    with recorded_draws() as draws:
        side = run_eager(subject, backward=backward)
    return tuple(draws) if side.given is not None else None


def run_side(
    name: str,
    subject: Subject,
    around: Callable[[ExitStack], Call],
    backward: bool,
    runs: int = 1,
    *,
    backend: str = "",
) -> Side:
    """Run the subject `runs` times, each from the same state, in what `around` opens; the call that it gives is made.
    Whatever is raised is the side's result, told as `backend`'s where that is named.
    """
    began = time.perf_counter()
    given: Given | None = None
    spread: _Spread | None = None
    try:
        for _ in range(runs):
            with subject.restored(), ExitStack() as stack:
                again = _run(subject, around(stack), backward)
            if given is None:
                given = again
                spread = _Spread(again) if runs > 1 else None
            elif spread is not None:
                spread.add(again)
    # Broad on purpose: whatever a side raises, the user's code or a compiler, is that side's result, told as data.
    except (Exception, SystemExit) as error:
        result = SideResult(name, time.perf_counter() - began, failure_of(error, _NO_PROGRAM, backend))
        return Side(result, error=error)
    return Side(SideResult(name, time.perf_counter() - began), given, variance=spread.told(runs) if spread else ())


def call_program(subject: Subject, call: Call, backward: bool) -> tuple[dict[str, object], Forms]:
    """Make the call, its loss and its backward: the leaves of what it gave, and their forms; gradients are left where
    torch leaves them.
    """
    # one thread: torch 2.11 crashed on an Inductor backward in a second one, and what is in force here holds there
    with torch.set_grad_enabled(backward or subject.grad), torch.autograd.set_multithreading_enabled(False):
        output = call(*subject.args, **subject.kwargs)
        given_leaves = leaves(output)
        given_as = forms(given_leaves, subject.tensors)
        if subject.loss is not None:
            given_leaves["loss"] = subject.loss(output)
        if backward:
            _differentiate(given_leaves)
    return given_leaves, given_as


def _run(subject: Subject, call: Call, backward: bool) -> Given:
    given_leaves, given_as = call_program(subject, call, backward)
    generators = generator_position(None)
    after = {name + AFTER: tensor for name, tensor in subject.changed().items()}
    gradients = {f"grad({name})": gradient for name, gradient in subject.gradients().items()}
    given = Given(snapshot(given_leaves | after), snapshot(gradients), given_as, generators=generators)
    if gpu.in_use():
        torch.cuda.synchronize()  # a kernel that fails tells of it here, on its own side
    return given


def _differentiate(outputs: Mapping[str, object]) -> None:
    """Backward from the loss, or else from all outputs at once."""
    if isinstance(loss := outputs.get("loss"), Tensor):
        loss.backward()  # type: ignore[no-untyped-call]
        return
    roots = _differentiable(outputs)
    if not roots:
        raise NothingToDifferentiate(
            "there is nothing to differentiate: no output requires a gradient", hint="leave the backward pass out"
        )
    torch.autograd.backward(roots, [_cotangent(each) for each in roots])


def _differentiable(outputs: Leaves) -> list[Tensor]:
    tensors = {id(each): each for each in outputs.values() if isinstance(each, Tensor)}
    return [each for each in tensors.values() if each.requires_grad]


def _cotangent(output: Tensor) -> Tensor:
    """The gradient that an output is given where there is no loss: the same numbers on every side.

    Sixteenths from -8/8 to 8/8, which every floating dtype holds exactly, drawn without any generator.
    """
    if parts(output):  # its gradient is of its own class
        ones = torch.ones_like(output.detach())
        for held in parts(ones).values():
            held.copy_(_cotangent(held))
        return ones
    steps = torch.arange(output.numel(), device=output.device) * _PRIME
    return (((steps >> 7) % 17 - 8) / 8).reshape(output.shape).to(output.dtype)


class _Spread:
    """How the runs of one side differ, by the first of them."""

    def __init__(self, first: Given) -> None:
        self.first = _tensors(first)
        self.differing: dict[str, Tensor] = {}
        self.max_abs = dict.fromkeys(self.first, 0.0)

    def add(self, given: Given) -> None:
        for name, again in _tensors(given).items():
            first = self.first.get(name)
            if first is None or first.shape != again.shape:
                continue
            unlike = (first != again) & ~((first != first) & (again != again))  # NaN twice is no difference
            self.differing[name] = unlike | self.differing.get(name, torch.zeros_like(unlike))
            if unlike.any():
                apart = to_float64(first[unlike]) - to_float64(again[unlike])
                self.max_abs[name] = max(self.max_abs[name], float(apart.abs().max()))

    def told(self, runs: int) -> tuple[Variance, ...]:
        return tuple(
            Variance(name, runs, self.max_abs[name], int(unlike.sum())) for name, unlike in self.differing.items()
        )


def _tensors(given: Given) -> dict[str, Tensor]:
    both = {**given.outputs, **given.gradients}
    return {name: value for name, value in both.items() if isinstance(value, Tensor)}
