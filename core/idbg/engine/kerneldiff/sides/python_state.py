"""Find the Python state that a program's functions can change, restore it in place, and describe what a run changed.

It is searched from the model, its loss and its arguments on: what functions close over, the globals that they name, the
attributes of modules, objects and classes, and what containers hold. Of libraries only the objects that the program
passes on are restored, and they are not compared.
"""

import dis
import re
import sys
from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from functools import _lru_cache_wrapper, lru_cache, partial
from itertools import islice
from operator import is_not
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple, TypeVar, cast

from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.nn import Module, Parameter
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from idbg.engine.compat import comparing, fx
from idbg.engine.failures.owners import is_own
from idbg.schema.diff import SideEffect

T = TypeVar("T")

Container = dict[Any, Any] | list[Any] | deque[Any] | set[Any]
CONTAINERS = (dict, OrderedDict, defaultdict, Counter, list, deque, set)
COUNTERS = (GradScaler, LRScheduler)
STATEFUL = (Module, Tensor, Optimizer, *COUNTERS)

_NESTED = 5  # how deep containers are looked for: a cache, its dict, its list of layers, a layer, its dict
_MOST = 10_000  # members: a list that holds a set of data is not searched
_OBJECTS = 50_000  # that are searched in all
_LEVELS = 3  # of containers in a text
_LONG = 40  # characters of a string that are shown
_SHOWN = 8  # members of a container in a text
_COMPARED = 200  # members of a container that are compared, beside their number
_ROUNDING = 0.01  # a float that changes by a smaller share may do so by rounding
_LARGE = 10**9  # a number from here on may be an address or a time
_SIMPLE = (str, bytes, int, float, complex, type(None))
_ABSENT: Final = object()
_OF_MODULES = frozenset(vars(Module())) | {"_compiled_call_impl"}
_OF_DYNAMO = ("__", "_dynamo", "_torchdynamo", "_is_torch")
_ATTRIBUTES = "{}"  # ends the name of a dict that is an object's attributes
_NUMBER = re.compile(r"\d[\w.+-]*")


class _Found(NamedTuple):
    """A value, and how deep it lies in containers. `is_held`: the program passes it on, or has it in a module, so that
    a library's object is restored too.
    """

    name: str
    value: object
    depth: int = 0
    is_held: bool = False


@dataclass(frozen=True)
class Text:
    """A value as people read it, and `compared`: what is the same on every side, without addresses and roundings."""

    shown: str
    compared: str
    number: float = 0.0


@dataclass(frozen=True)
class Effect:
    """One thing before a run and after it; of warnings how often they were issued."""

    before: Text
    after: Text
    kind: SideEffect = "effect"

    @property
    def is_sure(self) -> bool:
        """Whether it is more than another rounding."""
        one, other = self.before, self.after
        apart = abs(one.number - other.number) > _ROUNDING * max(abs(one.number), abs(other.number))
        return one.compared != other.compared or apart


Effects = Mapping[str, Effect]
"""What a run changed, by name."""


def differ(one: Effect | None, other: Effect | None) -> bool:
    """Whether two sides, which begin with the same state, leave something else."""
    if one is not None and other is not None:
        return one.after.compared != other.after.compared
    alone = one or other
    return alone is not None and alone.is_sure


@dataclass(frozen=True)
class _Variable:
    """One variable: a closure's `cell`, or the name in a dict or an object."""

    owner: object
    name: str = ""

    def value(self) -> object:
        if isinstance(self.owner, CellType):
            try:
                return self.owner.cell_contents
            except ValueError:  # nothing was assigned to it yet
                return _ABSENT
        if isinstance(self.owner, dict):
            return self.owner.get(self.name, _ABSENT)
        names = vars(self.owner) if isinstance(self.owner, type) else None
        return names.get(self.name, _ABSENT) if names is not None else getattr(self.owner, self.name, _ABSENT)

    def assign(self, value: object) -> None:
        """Assign this value, unless it is there already."""
        if self.value() is value:
            return
        if isinstance(self.owner, CellType):
            if value is _ABSENT:
                del self.owner.cell_contents
            else:
                self.owner.cell_contents = value
        elif isinstance(self.owner, dict):
            if value is _ABSENT:
                del self.owner[self.name]
            else:
                self.owner[self.name] = value
        elif value is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)


@dataclass
class PythonState:
    """The state at one moment. `cut`: it has more objects than are searched."""

    cut: bool = False
    _variables: list[tuple[str, _Variable, object, bool]] = field(default_factory=list)
    _containers: list[tuple[str, Container, Container, bool]] = field(default_factory=list)
    _classes: list[tuple[str, type, frozenset[str], bool]] = field(default_factory=list)
    _memoized: list[_Found] = field(default_factory=list)  # of functions that a cache may not call
    _compares: bool = True
    _seen: dict[int, object] = field(default_factory=dict)
    _known: set[tuple[int, str]] = field(default_factory=set)

    @staticmethod
    def of(roots: Mapping[str, object]) -> "PythonState":
        """The present state of what these lead to, by name."""
        state = PythonState()
        state._search(_Found(name, value, is_held=True) for name, value in roots.items())
        state._compares = False  # a cache may know the result on one side alone
        state._search(state._memoized)
        state._seen.clear()
        state._known.clear()
        return state

    def _search(self, roots: Iterable[_Found]) -> None:
        waiting = deque(roots)
        while waiting:
            found = waiting.popleft()
            value = found.value
            if isinstance(value, (Module, FunctionType)):
                value = comparing.uncompiled(value)
            if id(value) in self._seen or isinstance(value, _SIMPLE):
                continue
            if len(self._seen) >= _OBJECTS:
                self.cut = True
                break
            self._seen[id(value)] = value
            waiting.extend(self._led_to(found._replace(value=value)))

    def restore(self) -> None:
        """Restore it. Every object stays the same object."""
        for _, container, before, _ in self._containers:
            restore_container(container, before)
        for _, variable, value, _ in self._variables:
            variable.assign(value)
        for _, owner, names, _ in self._classes:
            for name in _added(owner, names):
                delattr(owner, name)

    def effects(self) -> Effects:
        """What was changed since, by name."""
        found: dict[str, Effect] = {}
        for name, before, after in self._changed():
            effect = Effect(text_of(before), text_of(after))
            if effect.before != effect.after:
                number = sum(known == name or known.startswith(f"{name} #") for known in found)
                found[f"{name} #{number + 1}" if number else name] = effect
        return found

    def _changed(self) -> Iterator[tuple[str, object, object]]:
        """Names, with the value before and the one after, of what is another object now or was written to."""
        for name, container, before, is_compared in self._containers:
            if not is_compared or _is_same(container, before):
                continue
            if not isinstance(container, dict) or not isinstance(before, dict):
                yield name, before, container
                continue
            for key in dict.fromkeys((*before, *container)):
                is_ours = isinstance(key, str) and (key in _OF_MODULES or key.startswith(_OF_DYNAMO))
                was, now = before.get(key, _ABSENT), container.get(key, _ABSENT)
                if was is not now and not is_ours:
                    attributes = name.endswith(_ATTRIBUTES)
                    at = name.removesuffix(_ATTRIBUTES) + str(key) if attributes else f"{name}[{text_of(key).shown}]"
                    yield at, was, now
        for name, variable, value, is_compared in self._variables:
            if is_compared and (now := variable.value()) is not value:
                yield name, value, now
        for name, owner, names, is_compared in self._classes:
            for new in _added(owner, names) if is_compared else ():
                yield f"{name}.{new}", _ABSENT, vars(owner)[new]

    # The search

    def _led_to(self, found: _Found) -> Iterator[_Found]:
        """What the value leads to."""
        match value := found.value:
            case Module():
                yield from self._of_module(found.name, value)
            case FunctionType():
                yield from self._of_function(value)
            case MethodType():
                yield from (found._replace(value=value.__self__), _Found("", value.__func__))
            case staticmethod() | classmethod():
                yield _Found("", value.__func__)
            case _lru_cache_wrapper():
                self._memoized.append(_Found("", value.__wrapped__))
            case property():
                yield from (_Found("", each) for each in (value.fget, value.fset))
            case partial():
                inner = {"": value.func, **{f"[{at}]": each for at, each in enumerate(value.args)}, **value.keywords}
                yield from (found._replace(name=joined(found.name, at), value=each) for at, each in inner.items())
            case type():
                yield from self._of_class(value)
            case _ if not isinstance(value, (*STATEFUL, ModuleType)) and not _is_torchs(type(value)):
                yield from self._of_object(found)

    def _of_module(self, name: str, module: Module) -> Iterator[_Found]:
        own = is_own_class(type(module))
        self._containers.append((joined(name, _ATTRIBUTES), vars(module), copy(vars(module)), own and self._compares))
        for key, each in vars(module).items():
            if key not in _OF_MODULES:
                yield _Found(joined(name, key), each, 1, is_held=True)
            elif type(each) in CONTAINERS:
                self._containers.append((key, each, copy(each), False))
        for key, child in module._modules.items():
            yield _Found(joined(name, key), child, is_held=True)
        yield _Found("", type(module))

    def _of_function(self, function: FunctionType) -> Iterator[_Found]:
        """Its variables outside of it. A library's function may wrap the program's: what it closes over is searched."""
        code = function.__code__
        if _is_torchs(function):
            return
        own = _is_own_code(code)
        for at, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield from self._of_variable(at, _Variable(cell), own)
        if not own:
            return
        if attributes := vars(function):
            self._containers.append(
                (f"{function.__name__}.{_ATTRIBUTES}", attributes, copy(attributes), self._compares)
            )
        defaults = function.__defaults__ or ()
        named = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        named_defaults = {**dict(zip(named, defaults, strict=True)), **(function.__kwdefaults__ or {})}
        yield from (_Found(at, each) for at, each in named_defaults.items())
        names = dict.fromkeys(at for each in _codes(code) for at in each.co_names)
        for at in names:
            if at in function.__globals__ or at in _assigned(code):
                yield from self._of_variable(at, _Variable(function.__globals__, at), own)
            value = function.__globals__.get(at)
            if isinstance(value, ModuleType) and is_own(getattr(value, "__file__", None) or "<"):
                for inner in names.keys() & vars(value).keys():
                    yield from self._of_variable(f"{at}.{inner}", _Variable(vars(value), inner), own)

    def _of_variable(self, name: str, variable: _Variable, own: bool) -> Iterator[_Found]:
        value = variable.value()
        if own and not name.startswith("__") and self._is_new(variable.owner, variable.name):
            self._variables.append((name, variable, value, self._compares))
        if value is not _ABSENT:
            yield _Found(name, value)

    def _is_new(self, owner: object, name: str = "") -> bool:
        key = id(owner), name
        is_new = key not in self._known
        self._known.add(key)
        return is_new

    def _of_class(self, owner: type) -> Iterator[_Found]:
        if not is_own_class(owner):
            return
        names = _names(owner)
        self._classes.append((owner.__name__, owner, frozenset(names), self._compares))
        for name in sorted(names):
            yield from self._of_variable(f"{owner.__name__}.{name}", _Variable(owner, name), True)
        yield from (_Found("", each) for name, each in vars(owner).items() if name not in names)
        yield from (_Found("", each) for each in owner.__bases__)

    def _of_object(self, found: _Found) -> Iterator[_Found]:
        """A container, a tuple, or an object with attributes."""
        name, value = found.name, found.value
        is_container, own = type(value) in CONTAINERS, is_own_class(type(value))
        is_library = not (is_container or own or isinstance(value, tuple))
        is_std = type(value).__module__.partition(".")[0] in sys.stdlib_module_names
        if found.depth > _NESTED or (is_library and (is_std or not found.is_held)):
            return
        held = value if is_container else getattr(value, "__dict__", None)
        if type(held) in CONTAINERS:
            at = name if is_container else joined(name, _ATTRIBUTES)
            self._containers.append(
                (at, cast("Container", held), copy(cast("Container", held)), not is_library and self._compares)
            )
        for slot in _slots(type(value)) if own else ():
            yield from self._of_variable(joined(name, slot), _Variable(value, slot), True)
        members = value if isinstance(value, tuple) else cast("Container", held or ())
        if len(members) > _MOST:
            return
        if isinstance(members, dict):
            for key, each in members.items():
                at = f"[{text_of(key).shown}]" if is_container else str(key)
                yield _Found(joined(name, at), each, found.depth + 1, found.is_held)
        else:
            for number, each in enumerate(members):
                yield _Found(f"{name}[{number}]", each, found.depth + 1, found.is_held)
        if own:
            yield _Found("", type(value))


@lru_cache(maxsize=1_000)
def _is_own_module(name: str) -> bool | None:
    """Whether the module is the program's own; None of one without a file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return None if file is None else is_own(file)


def is_own_class(owner: type) -> bool:
    """Whether the class is the program's own."""
    if owner in (SimpleNamespace, Namespace):
        return True
    if _is_torchs(owner) or owner.__module__ == "builtins":
        return False
    if (is_own_file := _is_own_module(owner.__module__)) is not None:
        return is_own_file
    return any(isinstance(each, FunctionType) and _is_own_code(each.__code__) for each in vars(owner).values())


def restore_container(container: Container, before: Container) -> None:
    """Restore its members, only if they changed: Dynamo's guards check these objects."""
    if _is_same(container, before):
        return
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(before)
    else:
        container.update(before)


def _is_same(container: Container, before: Container) -> bool:
    now, then = _members(container), _members(before)
    return len(now) == len(then) and not any(map(is_not, now, then))


def _members(container: Container) -> list[object]:
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def _names(owner: type) -> set[str]:
    return {name for name in vars(owner) if not name.startswith((*_OF_DYNAMO, "_abc_"))}


def _added(owner: type, names: frozenset[str]) -> list[str]:
    """The attributes that are new; those with an underscore may be torch's."""
    return sorted(name for name in _names(owner) - names if not name.startswith("_"))


def _slots(owner: type) -> Iterator[str]:
    for each in owner.__mro__:
        slots = vars(each).get("__slots__", ())
        yield from (name for name in ([slots] if isinstance(slots, str) else slots) if not name.startswith("__"))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


@lru_cache(maxsize=10_000)
def _assigned(code: CodeType) -> frozenset[str]:
    """The globals that it assigns."""
    steps = (step for each in _codes(code) for step in dis.get_instructions(each))
    return frozenset(str(step.argval) for step in steps if step.opname == "STORE_GLOBAL")


def _is_own_code(code: CodeType) -> bool:
    """Whether it is of the program's files, or of a notebook."""
    return code.co_filename.startswith("<") or is_own(code.co_filename)


def _is_torchs(value: FunctionType | type) -> bool:
    return (value.__module__ or "").partition(".")[0] == "torch"


def joined(*names: str) -> str:
    """One name for these steps of a path."""
    return ".".join(name for name in names if name).replace(".[", "[")


# Values as texts


def text_of(value: object, depth: int = 0) -> Text:
    """A value, with at most so many members and levels of containers."""
    match value:
        case _ if value is _ABSENT:
            return Text("absent", "absent")
        case None | bool() | Enum():
            return _plain(str(value))
        case int():
            return Text(str(value), str(value) if abs(value) < _LARGE else "a large integer")
        case float():
            return Text(f"{value:.6g}", "a float", value)
        case str():
            shown = repr(value if len(value) <= _LONG else f"{value[:_LONG]}...")
            return Text(shown, _NUMBER.sub("0", repr(value[:_COMPARED])))
        case Tensor():
            return _plain(f"{_class(value)}{fx.tensor_meta(value)}")
        case dict():
            pairs = [(text_of(key, depth + 1), text_of(each, depth + 1)) for key, each in _some(value.items(), depth)]
            texts = [Text(f"{key.shown}: {each.shown}", f"{key.compared}: {each.compared}") for key, each in pairs]
            return _of_members(value, texts, "{}")
        case list() | tuple() | deque():
            return _of_members(value, [text_of(each, depth + 1) for each in _some(value, depth)], "[]")
        case set() | frozenset():
            texts = sorted((text_of(each, depth + 1) for each in _some(value, depth)), key=lambda text: text.compared)
            return _of_members(value, texts, "{}")
    return _plain(type(value).__name__)


def _plain(text: str) -> Text:
    return Text(text, text)


def _some(members: Collection[T], depth: int) -> Iterator[T]:
    return islice(members, _COMPARED if depth < _LEVELS else 0)


def _of_members(value: Sized, texts: list[Text], signs: str) -> Text:
    kind = type(value).__name__
    more = f", ... ({len(value):,})" if len(value) > _SHOWN else ""
    shown = ", ".join(each.shown for each in texts[:_SHOWN])
    compared = f"{kind} {len(value)} {', '.join(each.compared for each in texts)}"
    return Text(f"{signs[0]}{shown}{more}{signs[1]}", compared)


def _class(tensor: Tensor) -> str:
    """Its class; "" of a plain tensor or a parameter."""
    return "" if type(tensor) in (Tensor, Parameter) else f"{type(tensor).__name__} "
