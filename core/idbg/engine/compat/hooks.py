"""Wrap the functions of torch that a feature needs, while it is on.

All functions of a feature (hook_table.HOOKS) are wrapped, or none. Where one is missing, or a wrapper raises, the
feature is turned off with one note, and the user's compile continues.
"""

import functools
import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, ParamSpec

import torch

import idbg
from idbg.engine.compat.hook_table import HOOKS, OTHER_COMPILERS, Hook
from idbg.engine.compat.names import Note, notes_of
from idbg.engine.compat.tracing import trace_log

P = ParamSpec("P")
Function = Callable[..., Any]
Native = Any
"""An object of another compiler's package, which idbg does not import before the program does."""
Wrapper = Callable[..., Any]
"""Called in place of a function of torch: with that function, and with the arguments of the call."""


class RaisedForTorch(Exception):
    """Raised by a wrapper to raise `error` in torch, which handles it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


_OURS = str(Path(idbg.__file__).parent)


class Feature:
    """One use of a feature of hook_table.FEATURES. Its first problem is noted. Paused, its wrappers do nothing."""

    def __init__(self, name: str, note: Note | None = None, is_paused: Callable[[], bool] = lambda: False) -> None:
        self.name, self.is_paused, self.is_off = name, is_paused, False
        self._notes = notes_of(note)

    def note(self, why: str) -> None:
        """Report a problem, the first time."""
        self._notes.note(self.name, why)

    def turn_off(self, why: str) -> None:
        """Leave torch's functions alone from now on."""
        self.is_off = True
        self.note(why)

    def safe(self, function: Callable[P, None]) -> Callable[P, None]:
        """The function as a callback of torch, whose errors are noted and not raised."""

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            if self.is_paused():
                return
            try:
                function(*args, **kwargs)
            except Exception as error:  # what only observes must not end the compile that it observes
                self.note(f"{type(error).__name__}: {error}")

        return call


def hooks_of(feature: str) -> list[Hook]:
    """The functions that a feature needs."""
    return [hook for hook in (*HOOKS, *OTHER_COMPILERS) if feature in hook.features]


def owner_of(hook: Hook) -> Any:
    """The module or class that holds the function. Raises AttributeError or ImportError where torch has none."""
    owner: Any = importlib.import_module(hook.module)
    *classes, name = hook.path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    inspect.getattr_static(owner, name)
    return owner


def missing(feature: str) -> str:
    """The first function of a feature that this torch, or another compiler, lacks, in words; "" where it has all."""
    for hook in hooks_of(feature):
        try:
            owner_of(hook)
        except (AttributeError, ImportError) as error:
            package = hook.module.partition(".")[0]
            who = f"torch {torch.__version__}" if package == "torch" else f"the installed {package}"
            return f"{who} has no {hook.name} ({error})"
    return ""


@contextmanager
def hooked(feature: Feature | str, wrappers: Mapping[str, Any]) -> Iterator[None]:
    """While it lasts, each function of the feature is called through its Wrapper, given by the path in the table.

    Importing Inductor takes 0.8 s: functions of it, and of other compilers, are wrapped once something has imported it.
    """
    feature = Feature(feature) if isinstance(feature, str) else feature
    with ExitStack() as stack:
        stack.callback(setattr, feature, "is_off", True)  # a wrapper that something else wraps stays behind

        def install() -> None:
            try:
                _install(feature, wrappers, stack)
            except Exception as error:  # torch's functions are not as expected: nothing of that may end a compile
                feature.turn_off(f"{type(error).__name__}: {error}")

        stack.enter_context(when_imported(_awaited(feature.name), install))
        yield


def _install(feature: Feature, wrappers: Mapping[str, Any], stack: ExitStack) -> None:
    if why := missing(feature.name):
        feature.turn_off(why)
        return
    for hook in hooks_of(feature.name):
        owner, name = owner_of(hook), hook.path.rpartition(".")[2]
        held = inspect.getattr_static(owner, name)
        kind = type(held) if isinstance(held, staticmethod | classmethod) else None
        guarded = _guarded(feature, hook, held.__func__ if kind else held, wrappers[hook.path])
        restore = (setattr, owner, name, held) if name in vars(owner) else (delattr, owner, name)
        setattr(owner, name, kind(guarded) if kind else guarded)
        stack.callback(*restore)


def _guarded(feature: Feature, hook: Hook, original: Function, wrapper: Wrapper) -> Function:
    """What torch calls: `wrapper` around `original`. Errors of `wrapper` itself turn the feature off.

    An argument that torch names comes at its place where the wrapper has a parameter for it, of whatever name.
    """

    named_places = max(0, len(_positional_names(wrapper)) - 1)  # without the first, which is `call`
    names = _positional_names(original)[:named_places]

    def guarded(*args: Any, **kwargs: Any) -> Any:
        if feature.is_off or feature.is_paused():
            return original(*args, **kwargs)
        while len(args) < len(names) and names[len(args)] in kwargs:
            args = (*args, kwargs.pop(names[len(args)]))
        results: list[Any] = []  # at most one: what `original` returned
        errors: list[BaseException] = []  # that `original` raised

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                results[:] = [original(*args, **kwargs)]
            except BaseException as error:  # of torch or the program: noted, so that it is not taken for the wrapper's
                errors.append(error)
                raise
            return results[0]

        try:
            try:
                return wrapper(call, *args, **kwargs)
            except RaisedForTorch as intended:
                raise intended.error from None
            except Exception as error:  # a wrapper only observes: what it raises itself must not end the compile
                if any(error is each for each in errors):
                    raise
                feature.turn_off(f"the wrapper of {hook.name} failed: {type(error).__name__}: {error}")
            if errors:
                raise errors[-1]
            return results[0] if results else original(*args, **kwargs)
        finally:
            errors.clear()  # an error holds its frames, and they hold the program's tensors

    if hook.hide_frames:
        file = original.__code__.co_filename
        wrapper = _function_in(wrapper, file)
        return functools.wraps(original)(_function_in(guarded, file))
    return functools.wraps(original)(guarded)


def below_hooks(function: object) -> object:
    """What was in the place of this hook, torch's function or one of the program's; any other function as it is."""
    while isinstance(function, FunctionType) and function.__code__.co_filename == __file__:
        function = getattr(function, "__wrapped__", None)
    return function


def _positional_names(function: Function) -> tuple[str, ...]:
    """The parameters that a caller may pass by position, in order; of a function without a signature none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD)


def _function_in(function: Function, file: str) -> Function:
    """The same function, whose frames carry the name of `file`."""
    assert isinstance(function, FunctionType)
    code = _code_in(function.__code__, file)
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def _code_in(code: CodeType, file: str) -> CodeType:
    inner = (_code_in(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))


def caller() -> FrameType:
    """The innermost frame that is not of idbg: the one of torch that calls a wrapped function."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


class _Trace(logging.Handler):
    def __init__(self, read: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._read = read

    def emit(self, record: logging.LogRecord) -> None:
        self._read(record)


@contextmanager
def trace_records(feature: Feature, read: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """While it lasts, `read` gets each record of torch's trace. Its errors are noted: they would end a compile."""
    handler, logger = _Trace(feature.safe(read)), trace_log()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _awaited(feature: str) -> str:
    """The module whose import the feature waits for; "" where it waits for none."""
    modules = [hook.module for hook in hooks_of(feature)]
    if others := [module for module in modules if module.partition(".")[0] != "torch"]:
        return others[0]
    return "torch._inductor.compile_fx" if any(each.startswith("torch._inductor") for each in modules) else ""


@contextmanager
def when_imported(name: str, install: Callable[[], None]) -> Iterator[None]:
    """Call `install` once: now, or at the first record of torch's trace after the import of this module.

    Torch traces each of its phases, so a record comes between the import and the first call of a wrapped function.
    """
    waiting = iter([install])  # next() is atomic: records come from any thread

    def look(_: object = None) -> None:
        module = sys.modules.get(name) if name else sys
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "_initializing", False):
            for each in waiting:
                each()

    look()
    handler, logger = _Trace(look), trace_log()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
