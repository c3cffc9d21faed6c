"""Save and restore one side's training state between its steps.

All sides train the same objects in lockstep, as the program closes over them. So the state of a side is saved after
each of its steps, and restored before the next. Parameters and buffers keep their memory, which compiled code may
refer to, and are copied; what a side creates itself (the optimizer's state, gradients) are objects of its own.
Saved state of a device is in host memory: one copy a side, however many steps are taken.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from idbg.engine.kerneldiff.float64.copies import float64_copies
from idbg.engine.kerneldiff.sides.subject import Subject, can_be_written
from idbg.engine.kerneldiff.tensors.float64_device import is_narrow, wide_dtype
from idbg.engine.program.environment import random_states

_CPU = torch.device("cpu")


class RestorePoint:
    """One side's state. It begins as the subject's current state (create it inside of `Subject.restored`).

    `in_float64` converts floating state to float64. `moved` changes each trained weight by this share of its value, up
    or down.
    """

    def __init__(self, subject: Subject, *, in_float64: bool = False, moved: float = 0.0) -> None:
        self.subject = subject
        self._values = _Float64Values(subject, moved) if in_float64 else _Values(subject.tensors.values())
        self._created = _Created(subject, in_float64)
        self._python = subject.python_state()
        self._generators: Callable[[], None] = random_states()

    @contextmanager
    def active(self) -> Iterator[None]:
        """While active, the subject has this side's state; what it is after is saved."""
        self._values.enter()
        try:
            self._created.enter()
            self._python.restore()
            self._generators()
            yield
        finally:
            self._generators = random_states()
            self._python = self.subject.python_state()
            self._created.leave()
            self._values.leave()


class _Values:
    """Values in the program's own dtypes: copied to the program's own memory, and from it."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._tensors = [each for each in tensors if can_be_written(each)]
        self.leave()

    def enter(self) -> None:
        for tensor, value in zip(self._tensors, self._values, strict=True):
            if tensor.shape == value.shape and tensor.dtype == value.dtype:
                tensor.data.copy_(value)
            else:  # a side resized it, or replaced its data
                tensor.data = value.to(tensor.device, copy=True)

    def leave(self) -> None:
        self._values = [each.detach().to(_CPU, copy=True) for each in self._tensors]


class _Float64Values:
    """Values in float64, whose memory replaces that of the program's tensors; `_others` have no float64."""

    def __init__(self, subject: Subject, moved: float) -> None:
        with float64_copies(subject.tensors.values(), whole=True):
            copies = [(each, each.data) for each in subject.tensors.values() if not is_narrow(each)]
        self._copies = [(each, data) for each, data in copies if data.dtype != each.dtype]
        copied = {id(each) for each, _ in self._copies}
        self._others = _Values(each for each in subject.tensors.values() if id(each) not in copied)
        if moved:
            self._move(moved)
        self._own: list[tuple[Tensor, Tensor]] = []
        self._offloaded = _Offloaded(data for _, data in self._copies)

    def enter(self) -> None:
        self._offloaded.restore()
        self._own = [(each, each.data) for each, _ in self._copies]
        for tensor, data in self._copies:
            tensor.data = data
        self._others.enter()

    def leave(self) -> None:
        self._copies = [(each, each.data) for each, _ in self._copies]
        self._others.leave()
        for tensor, data in self._own:
            tensor.data = data
        self._own = []
        self._offloaded = _Offloaded(data for _, data in self._copies)

    def _move(self, amount: float) -> None:
        generator = torch.Generator().manual_seed(0)
        for tensor, data in self._copies:
            if tensor.requires_grad:
                signs = torch.randint(2, data.shape, generator=generator).to(data.device) * 2 - 1
                data.add_(data * signs, alpha=amount)


class _Created:
    """What the program creates: gradients, the state of optimizers, attributes of counters."""

    def __init__(self, subject: Subject, in_float64: bool) -> None:
        self.subject = subject
        self._save(_copied)
        self._attributes = {name: subject.counted(each) for name, each in subject.counters.items()}
        for each in self._tensors() if in_float64 else ():
            if is_narrow(each):
                each.data = each.data.to(wide_dtype(each.dtype))
        self._offloaded = _Offloaded(self._tensors())

    def enter(self) -> None:
        self._offloaded.restore()
        for name, tensor in self.subject.tensors.items():
            if tensor.is_leaf:
                tensor.grad = self._gradients.get(name)
        for name, optimizer in self.subject.optimizers.items():
            state, groups = self._states[name]
            optimizer.state.clear()
            optimizer.state.update(state)
            for group, own in zip(optimizer.param_groups, groups, strict=True):
                group.update(own)
        for name, counter in self.subject.counters.items():
            vars(counter).clear()
            vars(counter).update(self._attributes[name])

    def leave(self) -> None:
        self._save(lambda value: value)
        for tensor in self.subject.tensors.values():
            if tensor.is_leaf:
                tensor.grad = None
        self._offloaded = _Offloaded(self._tensors())

    def _save(self, copied: Callable[[Any], Any]) -> None:
        leaves = [(name, each) for name, each in self.subject.tensors.items() if each.is_leaf]
        self._gradients: dict[str, Tensor] = {name: copied(each.grad) for name, each in leaves if each.grad is not None}
        self._states: dict[str, tuple[dict[Any, Any], list[dict[str, Any]]]] = {
            name: (
                {parameter: copied(state) for parameter, state in each.state.items()},
                [
                    copied({key: value for key, value in group.items() if key != "params"})
                    for group in each.param_groups
                ],
            )
            for name, each in self.subject.optimizers.items()
        }
        self._attributes = {name: dict(vars(each)) for name, each in self.subject.counters.items()}

    def _tensors(self) -> Iterator[Tensor]:
        """Every tensor of this side."""
        yield from self._gradients.values()
        for state, groups in self._states.values():
            settings = [value for group in groups for value in group.values()]
            moments = [value for of_one in state.values() if isinstance(of_one, dict) for value in of_one.values()]
            yield from (value for value in (*moments, *settings) if isinstance(value, Tensor))
        for counted in self._attributes.values():
            yield from (value for value in counted.values() if isinstance(value, Tensor))


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else deepcopy(value)


class _Offloaded:
    """Moves the data of tensors to the host until `restore`; the objects stay. One that shares its memory with others
    stays on its device, or they would no longer share it.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        on_device = {id(each): each for each in tensors if each.layout == torch.strided and not each.is_cpu}
        own = [each for each in on_device.values() if each.untyped_storage().nbytes() == each.nbytes]
        self._tensors = [(each, each.device) for each in own]
        for tensor in own:
            tensor.data = tensor.data.to(_CPU)

    def restore(self) -> None:
        for tensor, device in self._tensors:
            tensor.data = tensor.data.to(device)
