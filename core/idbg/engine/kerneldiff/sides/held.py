"""What does a function hold that a run of it may change: modules, tensors, optimizers, containers, counters?"""

import inspect
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from idbg.engine.compat import comparing

Container = dict[Any, Any] | list[Any] | deque[Any] | set[Any]
CONTAINERS = (dict, OrderedDict, defaultdict, list, deque, set)
Counting = GradScaler | LRScheduler
"""What counts steps in attributes of its own."""
COUNTING = (GradScaler, LRScheduler)

_TOLD = (Module, Tensor, Optimizer, *COUNTING)
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Place:
    """Where a function keeps a plain number: `cell` is a closure's, or `names` a module's, under `name`."""

    name: str
    cell: CellType | None = None
    names: dict[str, Any] | None = None

    @property
    def value(self) -> object:
        """What is there now."""
        return self.cell.cell_contents if self.cell is not None else (self.names or {}).get(self.name)

    def put(self, value: object) -> None:
        """Put this there, unless it is there."""
        if self.value is value:
            return
        if self.cell is not None:
            self.cell.cell_contents = value
        elif self.names is not None:
            self.names[self.name] = value


def held(function: object) -> dict[str, object]:
    """What a callable is, is bound to or closes over that a run may change, by name; "" for itself."""
    return {name: value for name, value in _reached(function) if isinstance(value, _TOLD) or type(value) in CONTAINERS}


def places(function: object) -> list[Place]:
    """Where the callable, and the functions that it closes over, count with plain numbers (`nonlocal`, `global`)."""
    functions = [value for _, value in _reached(function) if isinstance(value, FunctionType)]
    return [place for each in functions if not _is_torchs(each) for place in _places(each)]


def joined(*names: str) -> str:
    """The steps of a path as one name."""
    return ".".join(name for name in names if name).replace(".[", "[")


def _places(function: FunctionType) -> Iterator[Place]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            plain = type(cell.cell_contents) in _PLAIN
        except ValueError:  # nothing was assigned to it yet
            continue
        if plain:
            yield Place(name, cell=cell)
    for name in function.__code__.co_names:
        if type(function.__globals__.get(name, _PLAIN)) in _PLAIN:
            yield Place(name, names=function.__globals__)


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
        if not isinstance(value, (Module, Tensor)):
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
        return [(f"[{at}]", each) for at, each in enumerate(value) if isinstance(each, _TOLD)]
    if isinstance(value, dict):
        return [(f"[{key!r}]", each) for key, each in value.items() if isinstance(each, _TOLD)]
    own = getattr(value, "__dict__", {}) if value is getattr(root, "__self__", root) else {}
    return [("__dict__", own), *own.items()]


def _is_torchs(function: FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "torch"
