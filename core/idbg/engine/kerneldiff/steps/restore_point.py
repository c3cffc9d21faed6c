"""Where does one side stand between two of its steps, while the others take theirs?

All sides train the same objects, in lockstep: the program closes over them. So what a side has come to is taken out of
them after each of its steps, and put into them before the next. Parameters and buffers keep their memory, which
compiled code may know, and are copied; what a side made itself (the optimizer's state, gradients) is its own object.
What stands aside of a device's is in the host's memory: there is one copy a side, however many steps are taken.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.float64.mode import is_narrow, wide_dtype
from idbg.engine.kerneldiff.sides.held import Container
from idbg.engine.kerneldiff.sides.subject import Subject, can_be_written, put_back
from idbg.engine.program.environment import random_states

_CPU = torch.device("cpu")


class RestorePoint:
    """One side's state, from what the subject holds when it is made (inside of `Subject.restored`).

    `in_float64`: floating state is float64 from here on. `moved`: by how much of its size, up or down, each weight that
    is trained begins elsewhere.
    """

    def __init__(self, subject: Subject, *, in_float64: bool = False, moved: float = 0.0) -> None:
        self.subject = subject
        self._values = _Wide(subject, moved) if in_float64 else _Narrow(subject)
        self._made = _Made(subject, in_float64)
        self._containers: list[tuple[Container, Container]] = _contents(subject)
        self._numbers = [(place, place.value) for place in subject.places]
        self._generators: Callable[[], None] = random_states()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """While it lasts, the subject stands where this side does, and goes on from there."""
        self._values.enter()
        try:
            self._made.enter()
            for container, contents in self._containers:
                put_back(container, contents)
            for place, number in self._numbers:
                place.put(number)
            self._generators()
            yield
        finally:
            self._generators = random_states()
            self._numbers = [(place, place.value) for place in self.subject.places]
            self._containers = _contents(self.subject)
            self._made.leave()
            self._values.leave()


def _contents(subject: Subject) -> list[tuple[Container, Container]]:
    return [(each, copy(each)) for each in subject.containers()]


class _Narrow:
    """Values in the program's own dtypes: copied into the program's own memory, and out of it."""

    def __init__(self, subject: Subject) -> None:
        self._tensors = [each for each in subject.tensors.values() if can_be_written(each)]
        self._values: list[Tensor] = []
        self.leave()

    def enter(self) -> None:
        for tensor, value in zip(self._tensors, self._values, strict=True):
            if tensor.shape == value.shape and tensor.dtype == value.dtype:
                tensor.data.copy_(value)
            else:  # a side resized it, or gave it other data
                tensor.data = value.to(tensor.device, copy=True)

    def leave(self) -> None:
        self._values = [each.detach().to(_CPU, copy=True) for each in self._tensors]


class _Wide:
    """Values in float64, in memory of their own, which is lent to the program's tensors."""

    def __init__(self, subject: Subject, moved: float) -> None:
        tensors = {id(each): each for each in subject.tensors.values()}
        with float64_copies(tensors.values(), whole=True):
            self._lent = [(each, each.data) for each in tensors.values() if not is_narrow(each)]
        self._lent = [(each, data) for each, data in self._lent if data.dtype != each.dtype]
        lent = {id(each) for each, _ in self._lent}
        self._others = [each for each in tensors.values() if id(each) not in lent and can_be_written(each)]
        self._values = [each.detach().clone() for each in self._others]
        if moved:
            self._move(moved)
        self._own: list[tuple[Tensor, Tensor]] = []
        self._parked = _Parked(data for _, data in self._lent)
        self._parked.leave()

    def enter(self) -> None:
        self._parked.enter()
        self._own = [(each, each.data) for each, _ in self._lent]
        for tensor, data in self._lent:
            tensor.data = data
        for tensor, value in zip(self._others, self._values, strict=True):
            tensor.data.copy_(value)

    def leave(self) -> None:
        self._lent = [(each, each.data) for each, _ in self._lent]
        self._values = [each.detach().clone() for each in self._others]
        for tensor, data in self._own:
            tensor.data = data
        self._own = []
        self._parked = _Parked(data for _, data in self._lent)
        self._parked.leave()

    def _move(self, amount: float) -> None:
        generator = torch.Generator().manual_seed(0)
        for tensor, data in self._lent:
            if tensor.requires_grad:
                signs = torch.randint(2, data.shape, generator=generator).to(data.device) * 2 - 1
                data.add_(data * signs, alpha=amount)


@dataclass
class _Made:
    """What the program made beside its tensors: gradients, the state of optimizers, what is counted."""

    subject: Subject
    in_float64: bool
    _gradients: dict[str, Tensor] = field(default_factory=dict)
    _states: dict[str, tuple[dict[Any, Any], list[dict[str, Any]]]] = field(default_factory=dict)
    _counted: dict[str, dict[str, Any]] = field(default_factory=dict)
    _parked: "_Parked | None" = None

    def __post_init__(self) -> None:
        subject = self.subject
        self._gradients = {
            name: each.grad.clone() for name, each in subject.tensors.items() if each.is_leaf and each.grad is not None
        }
        self._states = {name: _state(each) for name, each in subject.optimizers.items()}
        self._counted = {name: subject.counted(each) for name, each in subject.counting.items()}
        if self.in_float64:
            for each in self._tensors():
                if is_narrow(each):
                    each.data = each.data.to(wide_dtype(each.dtype))
        self._parked = _Parked(self._tensors())
        self._parked.leave()

    def enter(self) -> None:
        if self._parked is not None:
            self._parked.enter()
        for name, tensor in self.subject.tensors.items():
            if tensor.is_leaf:
                tensor.grad = self._gradients.get(name)
        for name, optimizer in self.subject.optimizers.items():
            state, groups = self._states[name]
            optimizer.state.clear()
            optimizer.state.update(state)
            for group, own in zip(optimizer.param_groups, groups, strict=True):
                group.update(own)
        for name, counting in self.subject.counting.items():
            vars(counting).clear()
            vars(counting).update(self._counted[name])

    def leave(self) -> None:
        subject = self.subject
        leaves = [(name, each) for name, each in subject.tensors.items() if each.is_leaf]
        self._gradients = {name: each.grad for name, each in leaves if each.grad is not None}
        for _, tensor in leaves:
            tensor.grad = None
        self._states = {
            name: (dict(each.state), [_settings(group) for group in each.param_groups])
            for name, each in subject.optimizers.items()
        }
        self._counted = {name: dict(vars(each)) for name, each in subject.counting.items()}
        self._parked = _Parked(self._tensors())
        self._parked.leave()

    def _tensors(self) -> Iterator[Tensor]:
        """Every tensor that is this side's own."""
        yield from self._gradients.values()
        for state, groups in self._states.values():
            settings = [value for group in groups for value in group.values()]
            moments = [value for of_one in state.values() if isinstance(of_one, dict) for value in of_one.values()]
            yield from (value for value in (*moments, *settings) if isinstance(value, Tensor))
        for counted in self._counted.values():
            yield from (value for value in counted.values() if isinstance(value, Tensor))


def _state(optimizer: Optimizer) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """Copies of what the optimizer keeps of each parameter, and of its groups' settings."""
    return (
        {parameter: deepcopy(of_one) for parameter, of_one in optimizer.state.items()},
        [deepcopy(_settings(group)) for group in optimizer.param_groups],
    )


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}


class _Parked:
    """Tensors whose memory goes to the host while their side waits. They stay the objects that they are."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        apart = {id(each): each for each in tensors if each.layout == torch.strided and not each.is_cpu}
        self._tensors = [
            (each, each.device) for each in apart.values() if each.untyped_storage().nbytes() == _bytes(each)
        ]

    def leave(self) -> None:
        for tensor, _ in self._tensors:
            tensor.data = tensor.data.to(_CPU)

    def enter(self) -> None:
        for tensor, device in self._tensors:
            tensor.data = tensor.data.to(device)


def _bytes(tensor: Tensor) -> int:
    """What it takes by itself: one that shares its memory with others stays where it is, or they would part."""
    return tensor.numel() * tensor.element_size()
