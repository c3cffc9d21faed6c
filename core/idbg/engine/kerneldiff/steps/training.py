"""How far is each side's training from float64's, tensor by tensor, after each step?

The sides go in lockstep: float64 first, then each other side takes the same step, and is held against float64 before
the next one does. So no side's past is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from idbg.engine.capture.run import uncaptured
from idbg.engine.compat import comparing, dynamo
from idbg.engine.kerneldiff.float64.mode import Float64, is_narrow, usual_dtype
from idbg.engine.kerneldiff.float64.rounding import PerturbedRounding
from idbg.engine.kerneldiff.sides.leaf_comparison import as_tensor
from idbg.engine.kerneldiff.sides.run import Call, call_program
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.sides.traced import Traced, roundings
from idbg.engine.kerneldiff.steps.restore_point import RestorePoint
from idbg.engine.kerneldiff.steps.scaling import Follows, RecordedChecks
from idbg.engine.kerneldiff.tensors.compare import TensorDistance, tensor_distance
from idbg.schema.steps import Kind

RATE: Final = 0.01
"""Of the plain SGD that stands in for an optimizer where the program has none."""

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Side:
    """One side of a training: `around` opens what its steps run in, and gives what is called."""

    name: str
    stand: RestorePoint
    around: Callable[[ExitStack], Call]


class StepFailed(Exception):
    """A side's step raised its cause."""

    def __init__(self, side: str, step: int) -> None:
        super().__init__(f"{side} failed at step {step}")
        self.side, self.step = side, step


@dataclass
class Row:
    """One tensor after one step: `far` is how far each side is, by name. `unmoved` are the sides that have it as it was
    before the first step.
    """

    kind: Kind
    dtype: torch.dtype
    count: int
    far: dict[str, TensorDistance] = field(default_factory=dict)
    unmoved: set[str] = field(default_factory=set)


Rows = dict[str, Row]
"""All tensors after one step, by name."""


class Training:
    """A subject's steps, to be made inside of `Subject.restored`. `backward`: the outputs are differentiated by us."""

    def __init__(self, subject: Subject, *, backward: bool) -> None:
        self.subject = subject
        self.by_us = subject.loss is not None or (backward and not subject.optimizers)
        self.like = usual_dtype(subject.tensors.values())
        self._trained = {name for name, each in subject.parameters.items() if each.requires_grad}
        self._true: dict[str, Tensor] = {}
        self.skipped = 0  # of the steps that eager has taken, those that a scaler left out
        self._found: RecordedChecks | None = None
        self._tracer = Traced()

    @property
    def moved(self) -> float:
        """By how much of its size a rounding moves a weight."""
        return torch.finfo(self.like).eps / 2

    # Sides, from the state that the subject is in

    def eager(self) -> Side:
        """The program as plain Python."""
        return Side("eager", RestorePoint(self.subject), self._plain)

    def rounded(self, seed: int) -> Side:
        """Eager, with its ops rounding otherwise."""
        return Side(f"rounded {seed}", RestorePoint(self.subject), partial(self._plain, mode=PerturbedRounding(seed)))

    def float64(self, moved: float = 0.0) -> Side:
        """The program in float64; its weights begin `moved` of their size away."""
        name = "float64" if not moved else "moved"
        return Side(name, RestorePoint(self.subject, in_float64=True, moved=moved), self._wide)

    def traced(self) -> list[Side]:
        """Dynamo's graphs, run op by op; and sides of these whose ops round otherwise."""
        torch._dynamo.reset()
        model = self._tracer.compiled(self.subject.model)
        modes = roundings()
        return [
            Side(f"traced {at}", RestorePoint(self.subject), partial(self._traced, model, mode))
            for at, mode in enumerate(modes)
        ]

    def compiled(self, name: str, compile: Callable[[Call], Call], options: Mapping[str, Any]) -> Side:
        """The program as `compile` makes it, once for all of its steps."""
        torch._dynamo.reset()
        return Side(name, RestorePoint(self.subject), partial(self._compiled, compile(self.subject.model), options))

    def _plain(self, stack: ExitStack, mode: PerturbedRounding | None = None) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        if mode is not None:
            stack.enter_context(mode)
        return self.subject.model

    def _wide(self, stack: ExitStack) -> Call:
        stack.enter_context(dynamo.nothing_compiled())
        stack.enter_context(Float64(self.like))
        if self._found is not None:
            stack.enter_context(Follows(self._found.found))
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

    def steps(self, count: int, truth: Side, others: Iterable[Side]) -> Iterator[Rows]:
        """What each step leaves, as far as the others are from `truth`. Raises StepFailed."""
        sides = [truth, *others]
        ahead = self.eager() if self.subject.counting and truth.name == "float64" else None
        for step in range(1, count + 1):
            rows: Rows = {}
            self._true = {}
            if ahead is not None:
                self._go_ahead(ahead, step)
            for side in sides:
                try:
                    for kind, tensors in self._step(side):
                        self._look(side, truth, kind, tensors, rows)
                # Broad on purpose: whatever a side raises, the user's code or a compiler, is told as that side's
                except (Exception, SystemExit) as error:
                    raise StepFailed(side.name, step) from error
            yield rows

    def _step(self, side: Side) -> Iterator[tuple[Kind, dict[str, Tensor]]]:
        """One step of a side; what it leaves is told while the subject still holds it."""
        subject = self.subject
        with side.stand.taken():
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

    def _go_ahead(self, side: Side, step: int) -> None:
        """Eager's step, for what its scaler finds."""
        with RecordedChecks() as self._found:
            try:
                for _ in self._step(side):
                    pass
            # Broad on purpose: it is the program's own, and told as eager's
            except (Exception, SystemExit) as error:
                raise StepFailed(side.name, step) from error
        self.skipped += any(self._found.found)

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
        """What optimizers and scalers keep: `exp_avg(fc.weight)`, `scaler._scale`."""
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
            for name, counting in self.subject.counting.items()
            for key, value in vars(counting).items()
            if isinstance(value, Tensor)
        }
        return moments | counted

    def _look(self, side: Side, truth: Side, kind: Kind, tensors: Mapping[str, Tensor], rows: Rows) -> None:
        if side is truth:
            copied = side.name != "float64"  # whose memory is its own until its next step; the others' is shared
            for name, tensor in tensors.items():
                self._true[name] = tensor.detach().to(_CPU, copy=copied)
                rows[name] = Row(kind, tensor.dtype, tensor.numel())
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
        if before is None:  # it was assigned anew under a name of its own, or nothing can be written to it
            return name in self.subject.tensors
        return before.shape == value.shape and bool(torch.equal(before, value))


def _numbers(outputs: Mapping[str, object]) -> dict[str, Tensor]:
    tensors = ((name, as_tensor(value)) for name, value in outputs.items())
    return {name: each for name, each in tensors if each is not None}
