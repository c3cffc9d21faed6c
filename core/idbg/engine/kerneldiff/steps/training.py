"""Train the sides in lockstep, and measure each tensor's distance from float64 after each step.

In each step float64 goes first, then each other side takes the same step and is compared with float64 before the next
one does. So the results of earlier steps are not stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, dynamo, fx
from idbg.engine.compat.torch_types import OpOverload
from idbg.engine.kerneldiff.float64.mode import Float64
from idbg.engine.kerneldiff.float64.op_mode import Args, Kwargs, OpMode
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.float64.wide_ops import UNSCALES
from idbg.engine.kerneldiff.sides.leaf_comparison import as_tensor
from idbg.engine.kerneldiff.sides.resampling import TracedProgram, traced_roundings
from idbg.engine.kerneldiff.sides.run import Call, call_program
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.steps.restore_point import RestorePoint
from idbg.engine.kerneldiff.tensors.compare import TensorDistance, tensor_distance
from idbg.engine.kerneldiff.tensors.float64_device import is_narrow, usual_dtype
from idbg.schema.steps import Kind

RATE: Final = 0.01
"""Of the plain SGD that stands in for an optimizer where the program has none."""

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class TrainingSide:
    """One side of a training: `around` enters the contexts of its steps, and returns what is called."""

    name: str
    restore_point: RestorePoint
    around: Callable[[ExitStack], Call]


class StepFailed(Exception):
    """A side's step raised `__cause__`."""

    def __init__(self, side: str, step: int) -> None:
        super().__init__(f"{side} failed at step {step}")
        self.side, self.step = side, step


@dataclass
class TensorRow:
    """One tensor after one step. `far`: each side's distance from the truth, by the side's name. `unmoved`: the sides
    in
    which it has its initial value.
    """

    kind: Kind
    dtype: torch.dtype
    count: int
    far: dict[str, TensorDistance] = field(default_factory=dict)
    unmoved: set[str] = field(default_factory=set)


Rows = dict[str, TensorRow]
"""All tensors after one step, by name."""


class _ScalerChecks(OpMode):
    """Records each check of a GradScaler in `found`, or with `replay` gives each the result recorded at its place.

    A scale of 65536 is meant to overflow in float16, and the step is then skipped; float64 would take it and diverge.
    So where the program has a scaler, eager takes each step first, and float64 replays its checks.
    """

    def __init__(self, replay: "_ScalerChecks | None" = None) -> None:
        super().__init__()
        self.found: list[float] = []
        self._replay = iter(replay.found) if replay is not None else None

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> object:
        result = func(*args, **kwargs)
        if fx.op_name(func) == UNSCALES:
            if self._replay is None:
                self.found.append(float(args[1]))
            elif (found := next(self._replay, None)) is not None:
                args[1].fill_(found)
        return result


class Training:
    """A subject's steps; create it inside of `Subject.restored`. `backward`: idbg differentiates the outputs."""

    def __init__(self, subject: Subject, *, backward: bool) -> None:
        self.subject = subject
        self.by_us = subject.loss is not None or (backward and not subject.optimizers)
        self.like = usual_dtype(subject.tensors.values())
        self._trained = {name for name, each in subject.parameters.items() if each.requires_grad}
        self._true: dict[str, Tensor] = {}
        self.skipped = 0  # of the steps that eager has taken, those that a scaler left out
        self._checks: _ScalerChecks | None = None
        self._tracer = TracedProgram()

    @property
    def moved(self) -> float:
        """The relative change of a weight by a rounding."""
        return torch.finfo(self.like).eps / 2

    # Sides, from the state that the subject is in

    def eager(self) -> TrainingSide:
        """The program as plain Python."""
        return TrainingSide("eager", RestorePoint(self.subject), self._plain)

    def rounded(self, seed: int) -> TrainingSide:
        """Eager with perturbed roundings."""
        return TrainingSide(
            f"rounded {seed}", RestorePoint(self.subject), partial(self._plain, mode=PerturbedRounding(seed))
        )

    def float64(self, moved: float = 0.0) -> TrainingSide:
        """The program in float64; its weights begin changed by this share of their values."""
        name = "float64" if not moved else "moved"
        return TrainingSide(name, RestorePoint(self.subject, in_float64=True, moved=moved), self._wide)

    def traced(self) -> list[TrainingSide]:
        """Dynamo's graphs run op by op, and the same with perturbed roundings."""
        torch.compiler.reset()
        model = self._tracer.compiled(self.subject.model)
        modes = traced_roundings()
        return [
            TrainingSide(f"traced {at}", RestorePoint(self.subject), partial(self._traced, model, mode))
            for at, mode in enumerate(modes)
        ]

    def compiled(self, name: str, compile: Callable[[Call], Call], options: Mapping[str, Any]) -> TrainingSide:
        """The program compiled by `compile`, once for all of its steps."""
        torch.compiler.reset()
        return TrainingSide(
            name, RestorePoint(self.subject), partial(self._compiled, compile(self.subject.model), options)
        )

    def _plain(self, stack: ExitStack, mode: PerturbedRounding | None = None) -> Call:
        stack.enter_context(self.subject.compiled_way())
        stack.enter_context(dynamo.nothing_compiled())
        if mode is not None:
            stack.enter_context(mode)
        return self.subject.model

    def _wide(self, stack: ExitStack) -> Call:
        stack.enter_context(self.subject.compiled_way())
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(Float64(self.like))
        if self._checks is not None:
            stack.enter_context(_ScalerChecks(self._checks))
        return self.subject.model

    def _traced(self, model: Call, mode: PerturbedRounding | None, stack: ExitStack) -> Call:
        self._tracer.rounding = mode
        stack.enter_context(uncaptured())
        return model

    def _compiled(self, model: Call, options: Mapping[str, Any], stack: ExitStack) -> Call:
        stack.enter_context(comparing.random_as_eager())
        stack.enter_context(comparing.inductor_set(options))
        stack.enter_context(uncaptured())
        return model

    # Steps

    def steps(self, count: int, truth: TrainingSide, others: Iterable[TrainingSide]) -> Iterator[Rows]:
        """All tensors after each step, with the others' distances from `truth`. Raises StepFailed."""
        sides = [truth, *others]
        ahead = self.eager() if self.subject.counters and truth.name == "float64" else None
        for step in range(1, count + 1):
            rows: Rows = {}
            self._true = {}
            if ahead is not None:
                self._go_ahead(ahead, step)
            for side in sides:
                try:
                    for kind, tensors in self._step(side):
                        self._look(side, truth, kind, tensors, rows)
                # Broad on purpose: whatever a side raises, the user's code or a compiler, is reported as that side's
                except (Exception, SystemExit) as error:
                    raise StepFailed(side.name, step) from error
            yield rows

    def _step(self, side: TrainingSide) -> Iterator[tuple[Kind, dict[str, Tensor]]]:
        """One step of a side; yields the tensors after it while the subject still has its state."""
        subject = self.subject
        with side.restore_point.active():
            with ExitStack() as stack:
                outputs, _ = call_program(subject, side.around(stack), self.by_us)
            yield "output", _numbers(outputs)
            yield "gradient", self._gradients()
            if self.by_us:
                self._descend()
            yield "moment", self._moments()
            now = subject.tensors_now()
            yield "parameter", {name: each for name, each in now.items() if name in self._trained}
            yield "buffer", {name: each for name, each in now.items() if name not in self._trained}

    def _go_ahead(self, side: TrainingSide, step: int) -> None:
        """Eager's step, to record its scaler's checks."""
        with _ScalerChecks() as self._checks:
            try:
                for _ in self._step(side):
                    pass
            # Broad on purpose: it is the program's own, and reported as eager's
            except (Exception, SystemExit) as error:
                raise StepFailed(side.name, step) from error
        self.skipped += any(self._checks.found)

    def _gradients(self) -> dict[str, Tensor]:
        leaves = {name: each for name, each in self.subject.tensors.items() if each.is_leaf}
        return {f"grad({name})": each.grad for name, each in leaves.items() if each.grad is not None}

    def _descend(self) -> None:
        """A step of plain SGD."""
        with torch.no_grad():
            for parameter in self.subject.parameters.values():
                if parameter.requires_grad and parameter.is_leaf and parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-RATE)
        for tensor in self.subject.tensors.values():
            if tensor.is_leaf:
                tensor.grad = None

    def _moments(self) -> dict[str, Tensor]:
        """The state of optimizers and counters: `exp_avg(fc.weight)`, `scaler._scale`."""
        names = {id(each): name for name, each in self.subject.parameters.items()}
        moments = {
            f"{key}({names.get(id(parameter), 'a parameter')})": value
            for optimizer in self.subject.optimizers.values()
            for parameter, state in optimizer.state.items()
            for key, value in state.items()
            if isinstance(value, Tensor)
        }
        counted = {
            f"{name}.{key}": value
            for name, counter in self.subject.counters.items()
            for key, value in vars(counter).items()
            if isinstance(value, Tensor)
        }
        return moments | counted

    def _look(
        self, side: TrainingSide, truth: TrainingSide, kind: Kind, tensors: Mapping[str, Tensor], rows: Rows
    ) -> None:
        if side is truth:
            copied = side.name != "float64"  # float64's memory is its own until its next step; the others' is shared
            for name, tensor in tensors.items():
                self._true[name] = tensor.detach().to(_CPU, copy=copied)
                rows[name] = TensorRow(kind, tensor.dtype, tensor.numel())
            return
        for name, tensor in tensors.items():
            if name not in rows:
                continue
            row, value = rows[name], tensor.detach()
            row.far[side.name] = tensor_distance(self._true[name], value)
            if is_narrow(value):
                row.dtype = value.dtype
            if kind in ("parameter", "buffer") and self._is_unmoved(name, value):
                row.unmoved.add(side.name)

    def _is_unmoved(self, name: str, value: Tensor) -> bool:
        before = self.subject.initial(name)
        if before is None:  # it was assigned another tensor, or nothing can be written to it
            return name in self.subject.tensors
        return before.shape == value.shape and bool(torch.equal(before, value))


def _numbers(outputs: Mapping[str, object]) -> dict[str, Tensor]:
    tensors = ((name, as_tensor(value)) for name, value in outputs.items())
    return {name: each for name, each in tensors if each is not None}
