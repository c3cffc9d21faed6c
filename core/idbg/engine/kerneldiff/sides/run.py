"""Run each side of a comparison from the same state: eager, compiled, float64."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import torch
from torch import Tensor

from idbg.engine.compat import comparing, dynamo, gpu
from idbg.engine.failures import fallbacks
from idbg.engine.failures.describe import failure_of, is_of_compile, of_compiled_alone
from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.draws import Draws, generator_position, recorded_draws
from idbg.engine.kerneldiff.float64.memory import current_memory
from idbg.engine.kerneldiff.float64.mode import Float64
from idbg.engine.kerneldiff.float64.undeclared_writes import UndeclaredWrite
from idbg.engine.kerneldiff.sides.form import Forms, forms
from idbg.engine.kerneldiff.sides.python_state import Effect, Effects
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.sides.warned import warnings_recorded
from idbg.engine.kerneldiff.tensors.float64_device import to_float64, usual_dtype
from idbg.engine.kerneldiff.tensors.tree import AFTER, Leaves, Repeated, leaves, snapshot
from idbg.engine.kerneldiff.tensors.wrapped import parts
from idbg.schema.diff import SideResult, Variance
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program
from idbg.schema.remarks import Remark

Call = Callable[..., Any]

PRIME = 2_654_435_761  # Knuth's multiplier: neighbours get unlike numbers
_NO_PROGRAM = Program("")


class NothingToDifferentiate(BadInput):
    """No output requires a gradient."""


@dataclass(frozen=True)
class SideValues:
    """The values of one run: the leaves of its output, its loss and the tensors that it wrote to (`x (after)`), and
    gradients (`grad(x)`). `effects`: what it changed of the program's Python state. `generators`: the state of torch's
    random generators after it; `drew`: whether the run has changed it.
    """

    outputs: Leaves
    gradients: Leaves
    forms: Forms = field(default_factory=dict)
    effects: Effects = field(default_factory=dict, kw_only=True)
    generators: str = field(default="", kw_only=True)
    drew: bool = field(default=False, kw_only=True)

    @property
    def leaves(self) -> Leaves:
        """Outputs and gradients, by name."""
        return {**self.outputs, **self.gradients}


@dataclass(frozen=True)
class Side:
    """One side. `values` is None where it failed with `error`. Only float64 has `draws` and `undeclared` (writes of
    custom ops), only a compiled side has `graphs`: how many its backend received.
    """

    result: SideResult
    values: SideValues | None = None
    error: BaseException | None = None
    variance: tuple[Variance, ...] = ()
    draws: Draws = ()
    undeclared: tuple[UndeclaredWrite, ...] = ()
    graphs: int | None = None

    @property
    def leaves(self) -> Leaves:
        """Outputs and gradients, by name; empty where the side failed."""
        return self.values.leaves if self.values else {}

    def beside_eager(self, *, is_own_backend: bool) -> "Side":
        """This compiled side, beside one of eager that ran to its end: a failure is not the program's own."""
        failure = self.result.failure
        if failure is None or self.error is None:
            return self
        alone = of_compiled_alone(failure, self.error, is_own_backend=is_own_backend)
        raised = isinstance(self.error, Exception) and not is_of_compile(self.error)
        return replace(self, result=msgspec.structs.replace(self.result, failure=alone, raised=raised))

    def beside_compiled(self, test: str) -> "Side":
        """This side of eager, which raised, beside a compiled one that ran to its end."""
        if self.result.failure is None or not self.result.raised:
            return self
        hint = f"{test} returns a value for the same inputs: what eager checks is lost in the compiled program"
        failure = msgspec.structs.replace(self.result.failure, hint=hint)
        return replace(self, result=msgspec.structs.replace(self.result, failure=failure))

    def notes(self) -> Iterator[Remark]:
        """Notes for the report, of the reference side."""
        if self.values is None:
            return
        for name, value in self.values.outputs.items():
            if isinstance(value, Repeated):
                yield Remark("repeated", name, value.name)
        if not self.leaves:
            yield Remark("nothing returned")


def run_eager(
    subject: Subject,
    name: str = "eager",
    modes: Sequence[AbstractContextManager[object]] = (),
    *,
    backward: bool = False,
) -> Side:
    """The model as plain Python, even if the program compiled it, within these modes."""

    def around(stack: ExitStack) -> Call:
        stack.enter_context(subject.compiled_way())
        stack.enter_context(dynamo.nothing_compiled())
        for mode in modes:
            stack.enter_context(mode)
        return subject.model

    return run_side(name, subject, around, backward)


def run_compiled(
    name: str,
    subject: Subject,
    compile: Callable[[Call], Call],
    *,
    backward: bool = False,
    runs: int = 1,
    within: Callable[[], AbstractContextManager[None]] = nullcontext,
    fresh: bool = True,
    as_eager: bool = True,
) -> Side:
    """The model as `compile(model)` returns it, from its first call on; each of the runs is `within` this context.
    `fresh`: without any code that an earlier compile left behind. `as_eager`: Inductor draws as eager does.
    """
    if fresh:
        torch.compiler.reset()
    before = comparing.graphs_compiled()
    compiled: list[Call] = []

    def around(stack: ExitStack) -> Call:
        stack.enter_context(comparing.random_as_eager() if as_eager else nullcontext())
        stack.enter_context(within())
        compiled[:] = compiled or [compile(subject.model)]
        return compiled[0]

    with fallbacks.fallback_messages(name) as messages:
        side = run_side(name, subject, around, backward, runs, backend=name)
    if messages.found and side.values is not None:
        return Side(SideResult(name, side.result.seconds, fallbacks.failure(name, messages.found[0])))
    return replace(side, graphs=comparing.graphs_compiled() - before)


def run_float64(
    subject: Subject, *, backward: bool = False, modes: Sequence[AbstractContextManager[object]] = ()
) -> Side:
    """The model run op by op, with floating arithmetic in float64; `modes` receive the ops on float64 tensors."""
    memory = current_memory()
    mode = Float64(usual_dtype(subject.tensors.values()), subject.state_tensors(), memory=memory)

    def around(stack: ExitStack) -> Call:
        stack.enter_context(subject.compiled_way())
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(float64_copies(subject.state_tensors()))
        for each in (*modes, mode):
            stack.enter_context(each)
        return subject.model

    side = run_side("float64", subject, around, backward)
    values = side.values  # of which the copies have memory of their own
    if values is not None:
        outputs, gradients = memory.outside((values.outputs, values.gradients))
        values = replace(values, outputs=outputs, gradients=gradients, forms={})
    memory.close(fill=values is not None)
    undeclared = tuple(sorted(mode.undeclared, key=lambda write: (write.returned, write.op, write.argument)))
    return replace(side, values=values, draws=tuple(mode.draws), undeclared=undeclared)


def eager_draws(subject: Subject, *, backward: bool = False) -> Draws | None:
    """The random numbers that the program draws in eager; None where it fails."""
    with recorded_draws() as draws:
        side = run_eager(subject, backward=backward)
    return tuple(draws) if side.values is not None else None


def run_side(
    name: str,
    subject: Subject,
    around: Callable[[ExitStack], Call],
    backward: bool,
    runs: int = 1,
    *,
    backend: str = "",
) -> Side:
    """Run the subject `runs` times, each from the same state: `around` enters contexts and returns what is called.
    An exception is the side's result, attributed to `backend` if that is named.
    """
    began = time.perf_counter()
    values: SideValues | None = None
    spread: _Spread | None = None
    try:
        for _ in range(runs):
            warned: dict[str, Effect] = {}
            with subject.restored(), warnings_recorded(warned, subject.shown_warnings), ExitStack() as stack:
                again = _run(subject, around(stack), backward)
            again = replace(again, effects={**again.effects, **warned})
            if values is None:
                values = again
                spread = _Spread(again) if runs > 1 else None
            elif spread is not None:
                spread.add(again)
    # Broad on purpose: whatever a side raises, the user's code or a compiler, is that side's result.
    except (Exception, SystemExit) as error:
        failure = failure_of(error, _NO_PROGRAM, backend)
        raised = not backend and failure.kind == "user" and isinstance(error, Exception) and not gpu.is_lost()
        result = SideResult(name, time.perf_counter() - began, failure, raised)
        return Side(result, error=error)
    variance = spread.variance(runs) if spread else ()
    return Side(SideResult(name, time.perf_counter() - began), values, variance=variance)


def call_program(subject: Subject, call: Call, backward: bool) -> tuple[dict[str, object], Forms]:
    """Call the program, its loss and its backward. Returns the leaves of its output and their forms."""
    # one thread: torch 2.11 crashed on an Inductor backward in a second one, and modes of this thread apply there too
    with torch.set_grad_enabled(backward or subject.grad), torch.autograd.set_multithreading_enabled(False):
        output = call(*subject.args, **subject.kwargs)
        outputs = leaves(output)
        output_forms = forms(outputs, subject.tensors)
        if subject.loss is not None:
            outputs["loss"] = subject.loss(output)
        if backward:
            _differentiate(outputs)
    return outputs, output_forms


def _run(subject: Subject, call: Call, backward: bool) -> SideValues:
    before = generator_position(None)
    outputs, output_forms = call_program(subject, call, backward)
    generators, effects = generator_position(None), subject.effects()
    after = {name + AFTER: tensor for name, tensor in subject.changed().items()}
    gradients = {f"grad({name})": gradient for name, gradient in subject.gradients().items()}
    values = SideValues(
        snapshot(outputs | after),
        snapshot(gradients),
        output_forms,
        effects=effects,
        generators=generators,
        drew=generators != before,
    )
    if gpu.in_use():
        torch.cuda.synchronize()  # errors of this side's kernels are raised here
    return values


def _differentiate(outputs: Mapping[str, object]) -> None:
    """Backward from the loss if there is one, else from all outputs at once."""
    if isinstance(loss := outputs.get("loss"), Tensor):
        loss.backward()  # type: ignore[no-untyped-call]
        return
    tensors = {id(each): each for each in outputs.values() if isinstance(each, Tensor)}
    roots = [each for each in tensors.values() if each.requires_grad]
    if not roots:
        raise NothingToDifferentiate(
            "there is nothing to differentiate: no output requires a gradient", hint="leave the backward pass out"
        )
    torch.autograd.backward(roots, [_cotangent(each) for each in roots])


def _cotangent(output: Tensor) -> Tensor:
    """The gradient of an output where there is no loss: the same numbers on every side.

    Sixteenths from -8/8 to 8/8, which every floating dtype holds exactly, drawn without any generator.
    """
    if parts(output):  # its gradient is of its own class
        ones = torch.ones_like(output.detach())
        for held in parts(ones).values():
            held.copy_(_cotangent(held))
        return ones
    steps = torch.arange(output.numel(), device=output.device) * PRIME
    return (((steps >> 7) % 17 - 8) / 8).reshape(output.shape).to(output.dtype)


class _Spread:
    """How the runs of one side differ from the first of them."""

    def __init__(self, first: SideValues) -> None:
        self.first = _tensors(first)
        self.differing: dict[str, Tensor] = {}
        self.max_abs = dict.fromkeys(self.first, 0.0)

    def add(self, values: SideValues) -> None:
        for name, again in _tensors(values).items():
            first = self.first.get(name)
            if first is None or first.shape != again.shape:
                continue
            unlike = (first != again) & ~((first != first) & (again != again))  # NaN twice is no difference
            self.differing[name] = unlike | self.differing.get(name, torch.zeros_like(unlike))
            if unlike.any():
                apart = to_float64(first[unlike]) - to_float64(again[unlike])
                self.max_abs[name] = max(self.max_abs[name], float(apart.abs().max()))

    def variance(self, runs: int) -> tuple[Variance, ...]:
        return tuple(
            Variance(name, runs, self.max_abs[name], int(unlike.sum())) for name, unlike in self.differing.items()
        )


def _tensors(values: SideValues) -> dict[str, Tensor]:
    return {name: value for name, value in values.leaves.items() if isinstance(value, Tensor)}
