"""Find the state that a model, its inputs and its loss keep from one run to the next, and restore it."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from copy import deepcopy
from functools import cached_property, partial
from itertools import chain
from types import FunctionType, MethodType
from typing import TypeVar, cast

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from idbg.engine.compat import comparing
from idbg.engine.failures.owners import is_own
from idbg.engine.kerneldiff.float64.copies import has_no_memory
from idbg.engine.kerneldiff.sides.python_state import (
    COUNTERS,
    STATEFUL,
    Effects,
    PythonState,
    is_own_class,
    joined,
    restore_container,
)
from idbg.engine.kerneldiff.tensors.tree import leaves, mapped, nested
from idbg.engine.kerneldiff.tensors.wrapped import equal, parts
from idbg.engine.program.environment import state_restored
from idbg.engine.program.load import Model, Workload

T = TypeVar("T")


Counter = GradScaler | LRScheduler
"""Objects that count steps in their attributes."""


def state_of(function: object) -> dict[str, object]:
    """The objects with state that a callable is, is bound to or closes over, by name; "" for itself."""
    return {name: value for name, value in _reached(function) if isinstance(value, STATEFUL)}


def _reached(function: object) -> Iterator[tuple[str, object]]:
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", function)]
    while waiting:
        name, value = waiting.pop()
        value = comparing.uncompiled(value)
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield name, value
        if isinstance(value, Module):
            waiting += [("", method) for method in _own_methods(value)]
        elif not isinstance(value, Tensor):
            waiting += [(joined(name, step), inner) for step, inner in _holds(value, function)]


def _holds(value: object, root: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, partial):
        return [("", value.func), *((f"[{at}]", each) for at, each in enumerate(value.args)), *value.keywords.items()]
    if isinstance(value, MethodType):
        return [("", value.__self__), ("", value.__func__)]
    if isinstance(value, FunctionType):
        if _is_torchs(value):
            return []
        names = inspect.getclosurevars(value)
        return [*names.nonlocals.items(), *names.globals.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{at}]", each) for at, each in enumerate(value) if isinstance(each, STATEFUL)]
    if isinstance(value, dict):
        return [(f"[{key!r}]", each) for key, each in value.items() if isinstance(each, STATEFUL)]
    if isinstance(value, type):
        return vars(value).items() if is_own_class(value) else []
    own: dict[str, object] = getattr(value, "__dict__", {}) if value is getattr(root, "__self__", root) else {}
    return own.items()


def _own_methods(module: Module) -> Iterator[FunctionType]:
    """The methods of the program's own classes among the module's and those in it: they reach variables outside."""
    classes = dict.fromkeys(chain.from_iterable(type(each).__mro__ for each in module.modules()))
    for method in chain.from_iterable(vars(each).values() for each in classes):
        if isinstance(method, FunctionType) and is_own(method.__code__.co_filename):
            yield method


def _is_torchs(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "torch"


class Subject:
    """A workload, with all of its state.

    `input_gradients`: floating inputs require gradients while it runs, also those that the program has without.
    `compiled_way`: in it the program in eager goes the way that it goes where it is compiled.
    """

    def __init__(self, workload: Workload, *, input_gradients: bool = False) -> None:
        self.model: Model = comparing.uncompiled(workload.model)
        self.args = cast("tuple[object, ...]", mapped(workload.args, _as_leaf))
        self.kwargs = cast("dict[str, object]", mapped(dict(workload.kwargs), _as_leaf))
        self.loss = workload.loss
        self.grad = workload.grad
        self.input_gradients = input_gradients
        self.shown_warnings: set[str] = set()
        self.compiled_way: Callable[[], AbstractContextManager[object]] = nullcontext
        self._python: PythonState | None = None  # before the current run
        self._before: dict[int, Tensor] = {}
        self._gradients: dict[int, Tensor] = {}  # those that a run finds
        self._devices: dict[int, torch.device] = {}

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """The tensors among the arguments, each once: `args[0]`, `kwargs["mask"]`."""
        return _distinct(_tensors(leaves(self.args, "args") | leaves(self.kwargs, "kwargs")))

    @cached_property
    def _nested_inputs(self) -> dict[str, Tensor]:
        """The nested tensors among the arguments: `inputs` has views of their components, which hold no gradients."""
        return _distinct(nested(self.args, "args") | nested(self.kwargs, "kwargs"))

    @cached_property
    def parameters(self) -> dict[str, Tensor]:
        """Those of every module, the tensors that the model and the loss close over, and what optimizers change."""
        named = [
            (joined(prefix, name), parameter)
            for prefix, module in self._modules.items()
            for name, parameter in module.named_parameters()
        ]
        optimized = {
            joined(prefix, f"params[{at}]"): parameter
            for prefix, optimizer in self.optimizers.items()
            for at, parameter in enumerate(chain.from_iterable(group["params"] for group in optimizer.param_groups))
        }
        return _distinct(dict(named) | _tensors(self._state) | _tensors(optimized))

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors that a run may write to: parameters, buffers, other attributes of modules, inputs."""
        return self.tensors_now()

    def tensors_now(self) -> dict[str, Tensor]:
        """The same, during a run: a buffer may have been assigned another tensor."""
        tensors = dict(self.parameters)
        for prefix, module in self._modules.items():
            tensors |= {joined(prefix, name): buffer for name, buffer in module.named_buffers()}
            for path, inner in module.named_modules():
                at = joined(prefix, path)
                tensors |= {joined(at, name): value for name, value in _tensors(vars(inner)).items()}
        return _distinct(tensors | self.inputs)

    def state_tensors(self) -> list[Tensor]:
        """All tensors that the current run computes with, with gradients and the state of optimizers."""
        gradients = [tensor.grad for tensor in self.tensors.values() if tensor.is_leaf and tensor.grad is not None]
        states = [state for optimizer in self.optimizers.values() for state in optimizer.state.values()]
        moments = [value for state in states for value in state.values() if isinstance(value, Tensor)]
        return [*self.tensors.values(), *gradients, *moments]

    def gradients(self) -> dict[str, Tensor]:
        """The gradients that the current run stored in parameters and inputs, by these tensors' names."""
        named = (self.parameters | self.inputs | self._nested_inputs).items()
        stored = ((name, leaf, leaf.grad) for name, leaf in named if leaf.requires_grad and leaf.is_leaf)
        new = {name: grad for name, leaf, grad in stored if grad is not None and self._is_new(leaf, grad)}
        return _tensors(dict(chain.from_iterable(leaves(grad, name).items() for name, grad in new.items())))

    def _is_new(self, leaf: Tensor, gradient: Tensor) -> bool:
        """Whether it differs from the gradient before any run."""
        before = self._gradients.get(id(leaf))
        return (
            before is None
            or leaf.is_nested
            or before.shape != gradient.shape
            or not equal(gradient, before.to(gradient.dtype))
        )

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Run something from the initial state, and restore that after. Gradients are removed for the run, unless the
        program's own optimizer may use them.
        """
        may_have = (*self.tensors.values(), *self._nested_inputs.values())
        flags = [(tensor, tensor.requires_grad, tensor.grad) for tensor in may_have if tensor.is_leaf]
        uses = bool(self.optimizers) and self.loss is None and not self.input_gradients
        self._keep()
        with ExitStack() as stack:  # callbacks run in reverse order
            for flag in flags:
                stack.callback(_restore_flags, *flag)
            for counter in self.counters.values():
                stack.callback(restore_container, vars(counter), self.counted(counter))
            for optimizer in self.optimizers.values():
                stack.callback(optimizer.load_state_dict, deepcopy(optimizer.state_dict()))
            self._python = self.python_state()
            stack.callback(self._python.restore)
            stack.callback(self._put_back)
            stack.enter_context(state_restored())
            self._gradients = {id(leaf): gradient for leaf, _, gradient in flags if uses and gradient is not None}
            for tensor, _, gradient in flags:
                tensor.grad = gradient.clone() if uses and gradient is not None else None
            for tensor in self.inputs.values() if self.input_gradients else ():
                if tensor.is_leaf and (tensor.is_floating_point() or tensor.is_complex()):
                    tensor.requires_grad_(True)
            yield

    def changed(self) -> dict[str, Tensor]:
        """The tensors that the current run has written to, by name."""
        return {name: each for name, each in self.tensors.items() if self._is_changed(each)}

    def initial(self, name: str) -> Tensor | None:
        """The value before any run of the tensor of this name, or of this part of a wrapper."""
        if name in self.tensors:
            return self._was(self.tensors[name])
        held = {own: self._before.get(id(tensor)) for own, tensor in self.tensors.items() if name.startswith(own + ".")}
        candidates = [parts(before).get(name.removeprefix(own)) for own, before in held.items() if before is not None]
        return next((part for part in candidates if part is not None), None)

    def _keep(self) -> None:
        for tensor in self.tensors.values():
            if id(tensor) not in self._before and can_be_written(tensor):
                self._before[id(tensor)] = _kept(tensor)
                self._devices[id(tensor)] = tensor.device

    def _was(self, tensor: Tensor) -> Tensor | None:
        """The value before any run, on its original device."""
        before = self._before.get(id(tensor))
        return before if before is None else before.to(self._devices[id(tensor)])

    def _is_changed(self, tensor: Tensor) -> bool:
        before = self._before.get(id(tensor))
        if before is None or has_no_memory(tensor):
            return False
        # eager's batch norm writes its statistics without counting versions, and so does whoever writes by `.data`;
        # a compiled program counts what it writes: only the values tell the same on every side
        return tensor.shape != before.shape or not equal(tensor.detach(), before.to(tensor.device, tensor.dtype))

    def _put_back(self) -> None:
        """Copies initial values back to the memory that they came from, where views of it find them."""
        for tensor in self.tensors.values():
            before = self._before.get(id(tensor))
            if before is None:
                continue
            if tensor.shape == before.shape and tensor.dtype == before.dtype:
                tensor.data.copy_(before)
            else:  # it was resized, or given other data
                tensor.data = before.to(self._devices[id(tensor)], copy=True)

    @cached_property
    def _state(self) -> dict[str, object]:
        return state_of(self.model) | (state_of(self.loss) if self.loss else {})

    @cached_property
    def _modules(self) -> dict[str, Module]:
        return {name: value for name, value in self._state.items() if isinstance(value, Module)}

    @cached_property
    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizers that the program steps itself, by name."""
        return {name: value for name, value in self._state.items() if isinstance(value, Optimizer)}

    @cached_property
    def counters(self) -> dict[str, Counter]:
        """GradScalers and schedulers, by name."""
        return {name: value for name, value in self._state.items() if isinstance(value, COUNTERS)}

    def counted(self, counter: Counter) -> dict[str, object]:
        """A copy of its attributes; optimizers and parameters among them are not copied."""
        own: list[object] = [
            *self.optimizers.values(),
            *self.counters.values(),
            *self._modules.values(),
            *self.tensors.values(),
        ]
        own.append(vars(counter).get("optimizer"))
        return deepcopy(vars(counter), {id(each): each for each in own})

    def python_state(self) -> PythonState:
        """The present state of the program in Python's objects: what its functions can reach."""
        return PythonState.of({"": self.model, "loss": self.loss, "args": self.args, "kwargs": self.kwargs})

    @property
    def has_more_state(self) -> bool:
        """Whether the program has more objects than are restored and compared."""
        return self._python is not None and self._python.cut

    def effects(self) -> Effects:
        """What the current run has changed of that state, so far."""
        assert self._python is not None
        return self._python.effects()


def _kept(tensor: Tensor) -> Tensor:
    """A copy, in host memory for a GPU's tensor, as a model may fill its device. A wrapper's copy stays on its
    device.
    """
    if type(tensor) in (Tensor, torch.nn.Parameter) and tensor.is_cuda:
        return tensor.detach().to("cpu", copy=True)
    return tensor.detach().clone()


def _as_leaf(tensor: Tensor) -> Tensor:
    """A leaf for an input that was computed from others: several sides would walk the graph behind it, which works
    once.
    """
    return tensor if tensor.is_leaf else tensor.detach().clone().requires_grad_(True)


def _tensors(named: Mapping[str, object]) -> dict[str, Tensor]:
    return {name: value for name, value in named.items() if isinstance(value, Tensor)}


def _distinct(named: Mapping[str, T]) -> dict[str, T]:
    """Each object once, under its first name."""
    first = {id(value): name for name, value in reversed(list(named.items()))}
    return {name: value for name, value in named.items() if first[id(value)] == name}


def _restore_flags(tensor: Tensor, requires_grad: bool, gradient: Tensor | None) -> None:
    if not tensor.is_leaf:  # a buffer that what needs a gradient was added to
        tensor.detach_()
    tensor.grad = gradient
    tensor.requires_grad_(requires_grad)


def can_be_written(tensor: Tensor) -> bool:
    """False where several elements share memory: torch refuses to write there."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return False
    return all(stride or size < 2 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
