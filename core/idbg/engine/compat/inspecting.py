"""Compile a function for an inspection, and restore the state of torch and of the user's functions.

Dynamo stores compiled code on code objects. So the inspected function is a copy, and functions that the process has
compiled before get copies of their code for the time. Code compiled onto other functions, after a graph break, is
removed again. Counters, logs of compiles and Dynamo's knowledge of sizes are restored.
"""

import copy
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, cast
from weakref import ReferenceType

import torch

from idbg.engine.compat.hooks import hooked
from idbg.engine.compat.lowering import Compiled, Compiler
from idbg.engine.compat.names import find, internals

if TYPE_CHECKING:
    from torch._C._dynamo.eval_frame import _CacheEntry as CacheEntry

dynamo, native = internals._dynamo, internals._C._dynamo.eval_frame
convert_frame, pgo, utils = dynamo.convert_frame, dynamo.pgo, dynamo.utils

_COLLECTED = ("compilation_time_metrics", "cumulative_time_spent_ns", "_compilation_metrics", "warn_once_cache")
"""Containers of torch._dynamo.utils with data of all compiles."""


@dataclass
class Private:
    """Dynamo's state of an inspected copy, between its calls."""

    codes: list[CodeType] = field(default_factory=list)  # compared by identity
    copies: list[tuple[CodeType, CodeType]] = field(default_factory=list)  # of what was compiled before: (its, ours)
    profile: tuple[object, object] = (None, None)  # sizes by which Dynamo makes the next compile dynamic
    next_frame: int = 0
    compiles: Counter[object] = field(default_factory=Counter)

    def owns(self, code: CodeType) -> bool:
        """Whether the code is of a copy, or continues one after a graph break."""
        if any(code is own for own in self.codes):
            return True
        made = dynamo.resume_execution.ContinueExecutionCache.generated_code_metadata.get(code)
        if made is None or not any(made.code is own for own in self.codes):
            return False
        self.codes.append(code)
        return True

    def copy_of(self, code: CodeType) -> CodeType:
        """The copy that replaces code that was compiled before, always the same one."""
        for theirs, ours in self.copies:
            if theirs is code:
                return ours
        made = code.replace()
        self.copies.append((code, made))
        self.codes.append(made)
        return made

    def end(self) -> None:
        """Free the compiled code: Dynamo's caches of code after graph breaks reference each other."""
        caches = dynamo.resume_execution.ContinueExecutionCache
        for code in self.codes:
            for known in (caches.cache, caches.generated_code_metadata):
                known.values.pop(id(code), None)
                known.refs.pop(id(code), None)
            native.reset_code(code)
        self.codes.clear()
        self.copies.clear()


def copied(function: FunctionType, private: Private) -> FunctionType:
    """A copy of the function with a new code object, on which nothing is compiled."""
    code = function.__code__.replace()
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    private.codes.append(code)
    return made


def private_of(called: Compiled, private: Private) -> Compiled:
    """A callable that does the same as `called`, and is compiled separately."""
    if isinstance(called, torch.nn.Module):
        forward = getattr(called, "forward", None)
        if not _hooked(called) and isinstance(forward, MethodType) and isinstance(forward.__func__, FunctionType):
            return MethodType(copied(forward.__func__, private), called)
    elif isinstance(called, FunctionType):
        return copied(called, private)
    elif isinstance(called, MethodType) and isinstance(called.__func__, FunctionType):
        return MethodType(copied(called.__func__, private), called.__self__)

    def call(*args: object, **kwargs: object) -> object:
        return called(*args, **kwargs)

    return copied(cast("FunctionType", call), private)


def _hooked(module: torch.nn.Module) -> bool:
    """Whether a call of it runs hooks."""
    own = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    everywhere = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")
    modules = torch.nn.modules.module
    return any(getattr(module, name, None) for name in own) or any(getattr(modules, name) for name in everywhere)


def compiled(called: Compiled, backend: Compiler, dynamic: bool | None, guard_filter: object = None) -> Compiled:
    """Compile as torch.compile does, also where something replaces that function now."""
    with _backends_restored():
        return cast("Compiled", dynamo.optimize(backend, dynamic=dynamic, guard_filter_fn=guard_filter)(called))


@contextmanager
def state_restored(private: Private) -> Iterator[None]:
    """While it lasts, compiles of this thread use the state of `private`; then the state before is restored."""
    visited = _Visited(private)
    with ExitStack() as stack:
        stack.callback(visited.forget)
        stack.enter_context(_counters_restored(private))
        stack.enter_context(_profile_restored(private))
        stack.enter_context(_collected_data_restored())
        stack.enter_context(_compiled_functions_replaced(private))
        stack.enter_context(_backends_restored())
        stack.enter_context(visited.watched())
        stack.enter_context(torch.compiler.set_stance("default"))
        yield


@contextmanager
def _counters_restored(private: Private) -> Iterator[None]:
    """Frames continue the numbers of `private`; the user's next frame has the number that it would have had."""
    frame, compiles = convert_frame.FRAME_COUNTER, convert_frame.FRAME_COMPILE_COUNTER
    seen = utils.curr_frame
    convert_frame.FRAME_COUNTER = max(frame, private.next_frame)
    convert_frame.FRAME_COMPILE_COUNTER = Counter(compiles) | private.compiles  # type: ignore[assignment]
    try:
        yield
    finally:
        private.next_frame = convert_frame.FRAME_COUNTER
        private.compiles = Counter(convert_frame.FRAME_COMPILE_COUNTER)
        convert_frame.FRAME_COUNTER, convert_frame.FRAME_COMPILE_COUNTER = frame, compiles
        utils.curr_frame = seen


@contextmanager
def _profile_restored(private: Private) -> Iterator[None]:
    """Dynamo identifies code by file and line, and would mix sizes of the copy with those of the user's function."""
    kept = pgo._CODE_STATE, pgo._INIT_CODE_STATE
    pgo._CODE_STATE, pgo._INIT_CODE_STATE = private.profile  # type: ignore[assignment]
    settings = {"automatic_dynamic_local_pgo": False, "automatic_dynamic_remote_pgo": False}
    try:
        with dynamo.config.patch(settings):  # or it would be written for later processes
            yield
    finally:
        private.profile = pgo._CODE_STATE, pgo._INIT_CODE_STATE
        pgo._CODE_STATE, pgo._INIT_CODE_STATE = kept


@contextmanager
def counts_restored() -> Iterator[None]:
    """On exit, torch has counted what it had before. The containers stay the same objects: others reference them."""
    counters = {name: dict(counts) for name, counts in utils.counters.items()}
    try:
        yield
    finally:
        for name in list(utils.counters):
            utils.counters[name].clear()
            utils.counters[name].update(counters.get(name, {}))
            if name not in counters:
                del utils.counters[name]


@contextmanager
def _collected_data_restored() -> Iterator[None]:
    """The containers stay the same objects."""
    reasons = list(utils.graph_break_reasons)
    failures = {code: list(reasons) for code, reasons in utils.guard_failures.items()}
    collected = {name: find(f"torch._dynamo.utils.{name}", None) for name in _COLLECTED}
    kept = [(held, copy.copy(held)) for held in collected.values() if held is not None]
    times = {name: len(values) for name, values in utils.compilation_time_metrics.items()}
    try:
        with counts_restored():
            yield
    finally:
        utils.graph_break_reasons[:] = reasons
        utils.guard_failures.clear()
        utils.guard_failures.update(failures)
        for now, before in kept:
            now.clear()
            now.extend(before) if hasattr(now, "extend") else now.update(before)
        for name, count in times.items():
            del utils.compilation_time_metrics[name][count:]


@contextmanager
def _compiled_functions_replaced(private: Private) -> Iterator[None]:
    """Compiled functions get copies of their code, so that nothing is added to it.

    Functions that are created at each call, or that gc.freeze hides, are not found: an entry that never matches stays
    on their code.
    """
    codes = [code for code in map(_alive, convert_frame.input_codes.seen) if code is not None and _entries(code)]
    ours = [code for code in codes if private.owns(code)]
    theirs = [code for code in codes if not any(code is own for own in ours)]
    lent: list[tuple[FunctionType, CodeType]] = []
    try:
        for holder in gc.get_referrers(*theirs) if theirs else ():
            if isinstance(holder, FunctionType) and any(holder.__code__ is code for code in theirs):
                lent.append((holder, holder.__code__))
                holder.__code__ = private.copy_of(holder.__code__)
        yield
    finally:
        for holder, code in lent:
            holder.__code__ = code


def _alive(reference: ReferenceType[CodeType]) -> CodeType | None:
    return reference()


@contextmanager
def _backends_restored() -> Iterator[None]:
    known = set(dynamo.eval_frame.cached_backends)
    try:
        yield
    finally:
        for number in set(dynamo.eval_frame.cached_backends) - known:
            del dynamo.eval_frame.cached_backends[number]


@dataclass
class _Visited:
    """The code objects that Dynamo visited, and their entries before."""

    private: Private
    fresh: dict[int, CodeType] = field(default_factory=dict)  # by id
    known: dict[int, tuple[CodeType, set[int]]] = field(default_factory=dict)  # with the ids of their entries

    def watched(self) -> AbstractContextManager[None]:
        thread = threading.get_ident()

        def convert(
            call: Callable[..., object], callback: object, frame: FrameType, entry: object, state: dict[str, object]
        ) -> object:
            if threading.get_ident() == thread:
                self.see(frame.f_code, bool(state))
            return call(callback, frame, entry, state)

        return hooked("visited code", {"CatchErrorsWrapper.__call__": convert})

    def see(self, code: CodeType, compiled_before: bool) -> None:
        """Dynamo visits a code object; `compiled_before`: not for the first time."""
        if id(code) in self.fresh or id(code) in self.known or self.private.owns(code):
            return
        if compiled_before:
            self.known[id(code)] = code, {id(each.guard_manager) for each in _entries(code)}
        else:
            self.fresh[id(code)] = code

    def forget(self) -> None:
        """Remove what was compiled onto code that is not the copy's."""
        for code in self.fresh.values():
            native.reset_code(code)
        for code, before in self.known.values():
            for entry in [each for each in _entries(code) if id(each.guard_manager) not in before]:
                _invalidate(entry)


def _entries(code: CodeType) -> "list[CacheEntry]":
    return list(native._debug_get_cache_entry_list(code))


def _invalidate(entry: "CacheEntry") -> None:
    """Invalidate an entry as torch does when an object of a guard is deleted."""
    guards = entry.guard_manager
    if guards.cache_entry is not None and guards.extra_state is not None:
        guards.extra_state.invalidate(
            guards.cache_entry, dynamo.guards.DeletedGuardManagerWrapper("it was compiled for an inspection")
        )
