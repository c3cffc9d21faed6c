"""The door to torch's private names: each is looked up where it is used, and one that torch lacks ends nothing.

`internals` reads as torch does: `internals._ops.OpOverload`. Where this torch lacks the name, an empty class is
returned, and the run has a note of the feature that needs it (hook_table.USED_FOR). Nothing is an instance of that
class, and any other use raises Missing: it turns a hook's feature off, ends a job, or `instead_of` answers for it.
"""

import functools
import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from idbg.engine.compat.hook_table import CORE, FEATURES, USED_FOR

if TYPE_CHECKING:
    import torch as internals

__all__ = ["Missing", "Note", "check_core", "find", "instead_of", "internals", "notes_of", "notes_to"]

P = ParamSpec("P")
T = TypeVar("T")
Note = Callable[[str], None]
_NO_DEFAULT = object()


class Missing(AttributeError):
    """This torch lacks a private name, and what needs it does nothing."""

    def __init__(self, path: str) -> None:
        super().__init__(f"torch {importlib.import_module('torch').__version__} has no {path}")
        self.path = path


def find(path: str, default: object = _NO_DEFAULT) -> Any:
    """The object of a dotted name; the default where this torch lacks it. Raises Missing without one."""
    try:
        return _held(path)
    except (AttributeError, ImportError):
        if default is _NO_DEFAULT:
            raise Missing(path) from None
        return default


def check_core() -> None:
    """Raise Missing where this torch lacks a name without which no run is captured."""
    for path in CORE:
        find(path)


def _held(path: str) -> object:
    """The object of a dotted name. A function may have the name of the module that holds it."""
    owner, _, name = path.rpartition(".")
    try:
        module: object = importlib.import_module(owner)
    except ImportError:
        module = _held(owner)
    return _look_up(module, name, path)


def _look_up(owner: object, name: str, path: str) -> object:
    """The attribute of a module or of an object, or the submodule. Raises AttributeError or ImportError."""
    try:
        return getattr(owner, name)
    except AttributeError:
        if not isinstance(owner, ModuleType):
            raise
        return importlib.import_module(path)


class _Door:
    """A module of torch's. What it holds is looked up at each use, as hooks replace functions."""

    def __init__(self, path: str, module: ModuleType | None = None) -> None:
        vars(self).update(_Door__path=path, _Door__module=module)  # torch itself is imported by the first use

    def __getattr__(self, name: str) -> object:
        path = f"{self.__path}.{name}"
        try:
            held = _look_up(self.__module or importlib.import_module("torch"), name, path)
        except (AttributeError, ImportError):
            _lacks(path, sys._getframe(1))
            return _absent(path)
        if isinstance(held, ModuleType):
            held = _Door(path, held)
        if isinstance(held, _Door | type):
            vars(self)[name] = held
        return held

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__module, name, value)


class _Absent(type):
    """The type of a class that stands for what torch lacks."""

    path: str

    def __instancecheck__(cls, instance: object) -> bool:
        return False

    def __getattr__(cls, name: str) -> "_Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{cls.path}.{name}")

    def _fail(cls, *_: object, **__: object) -> NoReturn:
        raise Missing(cls.path)

    __call__ = __bool__ = __getitem__ = __iter__ = __contains__ = __len__ = __enter__ = __exit__ = _fail


def _absent(path: str) -> _Absent:
    return _Absent(path.rpartition(".")[2], (), {"path": path})


def _lacks(path: str, frame: FrameType) -> None:
    """Note the feature for which the module of this frame needs the name, also in runs that begin later."""
    module = str(frame.f_globals.get("__name__", "")).rpartition(".")[2]
    feature, why = USED_FOR.get(module, "torch"), str(Missing(path))
    if _runs[1:]:
        _runs[-1].note(feature, why)
    elif _lacking.setdefault(feature, why) == why:
        _runs[0].note(feature, why)


class RunNotes:
    """The notes of one run: the first of each feature."""

    def __init__(self, sink: Note) -> None:
        self.sink = sink
        self._noted: set[str] = set()

    def note(self, feature: str, why: str) -> None:
        """Report that a feature of hook_table.FEATURES is not recorded in full."""
        if feature not in self._noted:
            self._noted.add(feature)
            self.sink(f"{FEATURES[feature]} are not recorded in full: {why} (the compile itself continues)")


_runs = [RunNotes(logging.getLogger(__name__).warning)]  # the innermost last; the first: outside of runs
_lacking: dict[str, str] = {}  # features that lacked a name before a run began, and which


def notes_of(sink: Note | None) -> RunNotes:
    """The notes of the run that has this sink; of the current one without one."""
    return _runs[-1] if sink is None or sink == _runs[-1].sink else RunNotes(sink)


@contextmanager
def notes_to(sink: Note) -> Iterator[None]:
    """While it lasts, features that are turned on send their notes to `sink`; without one they go to the log."""
    notes = RunNotes(sink)
    _runs.append(notes)
    try:
        for feature, why in _lacking.items():
            notes.note(feature, why)
        yield
    finally:
        _runs.remove(notes)


def instead_of(result: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The decorator of a function that returns `result` where torch lacks a name that it uses."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except Missing:
                return cast(T, result)

        return call

    return decorate


if not TYPE_CHECKING:
    internals = _Door("torch")
