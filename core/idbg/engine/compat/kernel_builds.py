"""Which kernel is being built now, on this thread, on one of torch's or in a process of its pool?

Torch times each start of a compiler, and does not say for what. Run on torch 2.14 (CPU) and 2.11.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from idbg.engine.compat.patched import when_lowering

HEADER, CPU_CHECK = "precompiled header", "cpu check"
KEY, LOOK_UP, SAVE = "cache key", "cache look-up", "cache save"  # of the FX graph cache


class Builds(Protocol):
    """Who is told."""

    def began(self, name: str, what: str) -> None:
        """One of the names above begins on this thread, and what it is of."""

    def ended(self, name: str) -> None:
        """The last of that name on this thread is over."""

    def handed_over(self, build: int, kernel: str) -> None:
        """A process of the pool was given a kernel; the same build again: by its real name."""

    def came_back(self, build: int, seconds: float | None) -> None:
        """It is there, on any thread; `seconds`: what it took there, None where it failed."""


class _Doing(threading.local):
    what = ""


_doing = _Doing()


def what() -> str:
    """The kernel that is built on this thread; "" where it is not known."""
    return _doing.what


@contextmanager
def _named(kernel: str) -> Iterator[None]:
    before, _doing.what = _doing.what, kernel
    try:
        yield
    finally:
        _doing.what = before


@contextmanager
def builds_heard(listener: Builds) -> Iterator[None]:
    """While it lasts, `what` knows kernels' names, and what torch does not time itself is told."""
    with when_lowering(lambda: _patched(listener)):
        yield


@contextmanager
def _patched(listener: Builds) -> Iterator[None]:
    from torch._inductor import codecache
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.cpu_vec_isa import VecISA

    cache = codecache.FxGraphCache
    put: list[tuple[Any, str, object]] = [
        (AsyncCompile, "cpp", _assigned(AsyncCompile.cpp)),
        (AsyncCompile, "cpp_pybinding", _assigned(AsyncCompile.cpp_pybinding)),
        (AsyncCompile, "triton", _triton(AsyncCompile.triton, listener)),
        (AsyncCompile, "submit", _submitting(AsyncCompile.__dict__["submit"].__func__)),
        (codecache, "_precompile_header", _told(codecache._precompile_header, HEADER, listener)),
        (VecISA, "check_build", _told(VecISA.check_build, CPU_CHECK, listener)),
        (cache, "prepare_key", staticmethod(_told(cache.prepare_key, KEY, listener, of_it=False))),
        (cache, "_lookup_graph", staticmethod(_told(cache._lookup_graph, LOOK_UP, listener, of_it=False))),
        (cache, "_save_graph", staticmethod(_told(cache._save_graph, SAVE, listener, of_it=False))),
    ]
    with ExitStack() as stack:
        for owner, name, value in put:
            stack.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, value)
        yield


def _assigned(original: Callable[..., object]) -> Callable[..., object]:
    """Kernels of C++ are not told their names: each is the variable that output code assigns them to."""

    @functools.wraps(original)
    def build(*args: object, **kwargs: object) -> object:
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and caller.f_code.co_name != "<module>":  # others listen between it and us
            caller = caller.f_back
        with _named(_variable(caller.f_code.co_filename, caller.f_lineno) if caller else ""):
            return original(*args, **kwargs)

    return build


def _variable(file: str, line: int) -> str:
    try:
        with Path(file).open(encoding="utf-8") as lines:
            text = next((text for number, text in enumerate(lines, 1) if number == line), "")
    except OSError:
        return ""
    name, assigned, _ = text.partition(" = ")
    return name if assigned and name.isidentifier() else ""


def _submitting(original: Callable[..., object]) -> object:
    """Torch's threads know what the one that gave them work knew."""

    def submit(cls: object, task: Callable[[], object]) -> object:
        kernel = what()

        def named() -> object:
            with _named(kernel):
                return task()

        return original(cls, named)

    return classmethod(submit)


def _triton(original: Callable[..., Any], listener: Builds) -> Callable[..., object]:
    """A kernel of Triton is built here, or in the pool: then there is a future of it, which may be an older one's."""

    @functools.wraps(original)
    def build(compiler: object, kernel_name: str, *args: object, **kwargs: object) -> object:
        with _named(kernel_name):
            built = original(compiler, kernel_name, *args, **kwargs)
        future = getattr(built, "future", None)
        if future is not None and not getattr(future, "idbg_heard", False):
            future.idbg_heard = True
            listener.handed_over(id(future), kernel_name)
            future.add_done_callback(lambda done: listener.came_back(id(done), _took(done)))
        elif future is not None and not future.done():
            listener.handed_over(id(future), kernel_name)
        return built

    return build


def _took(future: Any) -> float | None:
    """What the pool's process says that it took: it answers with the kernel, and microseconds."""
    if future.cancelled() or future.exception() is not None:
        return None
    answer = future.result()
    microseconds = answer[1] if isinstance(answer, tuple) and len(answer) == 2 else None
    return microseconds / 1e6 if isinstance(microseconds, int | float) else None


def _told(original: Callable[..., object], name: str, listener: Builds, *, of_it: bool = True) -> Callable[..., object]:
    """`of_it`: what it is given first says what it is of."""

    @functools.wraps(original)
    def timed(*args: object, **kwargs: object) -> object:
        listener.began(name, str(args[0]) if of_it and args else "")
        try:
            with _named(""):
                return original(*args, **kwargs)
        finally:
            listener.ended(name)

    return timed
