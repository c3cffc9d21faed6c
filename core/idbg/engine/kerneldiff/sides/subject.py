"""What state do a model, its inputs and its loss carry from one run to the next, and how is it put back?"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import cached_property
from itertools import chain
from operator import is_not
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.float64.where_taken import has_no_memory
from idbg.engine.kerneldiff.sides.held import CONTAINERS, COUNTING, Container, Counting, Place, held, joined, places
from idbg.engine.kerneldiff.tensors.tree import leaves, mapped
from idbg.engine.kerneldiff.tensors.wrapped import equal, parts
from idbg.engine.program.environment import state_restored
from idbg.engine.program.load import Model, Workload

T = TypeVar("T")


class Subject:
    """A workload, with everything that it holds.

    `input_gradients`: floating inputs require gradients while it runs, also those that the program has without.
    """

    def __init__(self, workload: Workload, *, input_gradients: bool = False) -> None:
        self.model: Model = comparing.uncompiled(workload.model)
        self.args = cast("tuple[object, ...]", mapped(workload.args, _as_leaf))
        self.kwargs = cast("dict[str, object]", mapped(dict(workload.kwargs), _as_leaf))
        self.loss = workload.loss
        self.grad = workload.grad
        self.input_gradients = input_gradients
        self._before: dict[int, Tensor] = {}
        self._gradients: dict[int, Tensor] = {}  # those that a run finds
        self._devices: dict[int, torch.device] = {}

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        """The tensors among the arguments, each once: `args[0]`, `kwargs["mask"]`."""
        return _distinct(_tensors(leaves(self.args, "args") | leaves(self.kwargs, "kwargs")))

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
        return _distinct(dict(named) | _tensors(self._held) | _tensors(optimized))

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """All that a run may write to: parameters, buffers, tensors that modules have as attributes, inputs."""
        return self.tensors_now()

    def tensors_now(self) -> dict[str, Tensor]:
        """The same, of a run in hand: a buffer that was assigned anew is another tensor now."""
        tensors = dict(self.parameters)
        for prefix, module in self._modules.items():
            tensors |= {joined(prefix, name): buffer for name, buffer in module.named_buffers()}
            for path, inner in module.named_modules():
                at = joined(prefix, path)
                tensors |= {joined(at, name): value for name, value in _tensors(vars(inner)).items()}
        return _distinct(tensors | self.inputs)

    def lent(self) -> list[Tensor]:
        """All that the run in hand computes with: also gradients that it found, and the state of optimizers."""
        gradients = [tensor.grad for tensor in self.tensors.values() if tensor.is_leaf and tensor.grad is not None]
        states = [state for optimizer in self.optimizers.values() for state in optimizer.state.values()]
        moments = [value for state in states for value in state.values() if isinstance(value, Tensor)]
        return [*self.tensors.values(), *gradients, *moments]

    def gradients(self) -> dict[str, Tensor]:
        """The gradients that the run in hand left in parameters and inputs, by these tensors' names."""
        both = (self.parameters | self.inputs).items()
        leaves = ((name, leaf, leaf.grad) for name, leaf in both if leaf.requires_grad and leaf.is_leaf)
        return {name: grad for name, leaf, grad in leaves if grad is not None and self._is_new(leaf, grad)}

    def _is_new(self, leaf: Tensor, gradient: Tensor) -> bool:
        """Whether it is not what was there before any run."""
        before = self._gradients.get(id(leaf))
        return before is None or before.shape != gradient.shape or not equal(gradient, before.to(gradient.dtype))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Whatever runs here finds the same state, and no gradients but those that an optimizer of its own may be there
        to use; after it all is as it was.
        """
        flags = [(tensor, tensor.requires_grad, tensor.grad) for tensor in self.tensors.values() if tensor.is_leaf]
        containers = [(each, copy(each)) for each in self.containers()]
        optimizers = [(each, deepcopy(each.state_dict())) for each in self.optimizers.values()]
        counting = [(each, self.counted(each)) for each in self.counting.values()]
        numbers = [(place, place.value) for place in self.places]
        uses = bool(optimizers) and self.loss is None and not self.input_gradients
        self._keep()
        try:
            with state_restored():
                self._gradients = {id(leaf): gradient for leaf, _, gradient in flags if uses and gradient is not None}
                for tensor, _, gradient in flags:
                    tensor.grad = gradient.clone() if uses and gradient is not None else None
                for tensor in self.inputs.values() if self.input_gradients else ():
                    if tensor.is_leaf and (tensor.is_floating_point() or tensor.is_complex()):
                        tensor.requires_grad_(True)
                yield
        finally:
            self._put_back()
            for container, before in containers:
                put_back(container, before)
            for optimizer, state in optimizers:
                optimizer.load_state_dict(state)
            for each, counted in counting:
                vars(each).clear()
                vars(each).update(counted)
            for place, number in numbers:
                place.put(number)
            for tensor, required, gradient in flags:
                if not tensor.is_leaf:  # a buffer that what needs a gradient was added to
                    tensor.detach_()
                tensor.grad = gradient
                tensor.requires_grad_(required)

    def changed(self) -> dict[str, Tensor]:
        """The tensors that the run in hand has written to, by name."""
        return {name: each for name, each in self.tensors.items() if self._is_changed(each)}

    def initial(self, name: str) -> Tensor | None:
        """The value that the tensor of this name, or this part of one that wraps others, had before any run."""
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
        """What it was before any run, on the device that it was on."""
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
        """Values go back to the memory that they came from: views of it, and whoever else holds it, see them."""
        for tensor in self.tensors.values():
            before = self._before.get(id(tensor))
            if before is None:
                continue
            if tensor.shape == before.shape and tensor.dtype == before.dtype:
                tensor.data.copy_(before)
            else:  # it was resized, or given other data
                tensor.data = before.to(self._devices[id(tensor)], copy=True)

    @cached_property
    def _held(self) -> dict[str, object]:
        return held(self.model) | (held(self.loss) if self.loss else {})

    @cached_property
    def _modules(self) -> dict[str, Module]:
        return {name: value for name, value in self._held.items() if isinstance(value, Module)}

    @cached_property
    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizers that the program steps by itself, by name."""
        return {name: value for name, value in self._held.items() if isinstance(value, Optimizer)}

    @cached_property
    def counting(self) -> dict[str, Counting]:
        """Scalers of gradients and schedules of learning rates, by name."""
        return {name: value for name, value in self._held.items() if isinstance(value, COUNTING)}

    @cached_property
    def places(self) -> list[Place]:
        """Where the program counts with plain numbers."""
        return places(self.model) + (places(self.loss) if self.loss else [])

    def counted(self, counting: Counting) -> dict[str, Any]:
        """A copy of what it counts; optimizers and parameters in it are the program's own."""
        own: list[object] = [
            *self.optimizers.values(),
            *self.counting.values(),
            *self._modules.values(),
            *self.tensors.values(),
        ]
        own.append(vars(counting).get("optimizer"))
        return deepcopy(vars(counting), {id(each): each for each in own})

    def containers(self) -> Iterator[Container]:
        """Where modules keep flags, counters, parameters and buffers, and what functions and modules append to."""
        inner = chain.from_iterable(module.modules() for module in self._modules.values())
        modules = {id(each): each for each in inner}.values()
        yield from (vars(module) for module in modules)
        values = chain(self._held.values(), *(vars(module).values() for module in modules))
        yield from {id(each): each for each in values if type(each) in CONTAINERS}.values()


def _kept(tensor: Tensor) -> Tensor:
    """A copy, of a GPU's tensor on the host: a model may fill its device. What wraps others stays where it is."""
    if type(tensor) in (Tensor, torch.nn.Parameter) and tensor.is_cuda:
        return tensor.detach().to("cpu", copy=True)
    return tensor.detach().clone()


def _as_leaf(tensor: Tensor) -> Tensor:
    """An input that was computed from others: the graph behind it can be walked once, and there are several sides."""
    return tensor if tensor.is_leaf else tensor.detach().clone().requires_grad_(True)


def _tensors(named: Mapping[str, object]) -> dict[str, Tensor]:
    return {name: value for name, value in named.items() if isinstance(value, Tensor)}


def _distinct(named: Mapping[str, T]) -> dict[str, T]:
    """Each object once, under its first name."""
    first = {id(value): name for name, value in reversed(list(named.items()))}
    return {name: value for name, value in named.items() if first[id(value)] == name}


def can_be_written(tensor: Tensor) -> bool:
    """Not where several elements are one place in memory: torch refuses to write there."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return False
    return all(stride or size < 2 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def put_back(container: Container, before: Container) -> None:
    """Only where it was changed: Dynamo's guards look at these."""
    now, then = _members(container), _members(before)
    if len(now) == len(then) and not any(map(is_not, now, then)):
        return
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(before)
    else:
        container.update(before)


def _members(container: Container) -> list[object]:
    return [*container, *container.values()] if isinstance(container, dict) else list(container)
