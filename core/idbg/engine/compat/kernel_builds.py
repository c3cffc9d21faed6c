"""Name the kernel that is being built, on this thread, on one of torch's or in a process of its pool.

Torch times each start of a compiler without the kernel's name.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch

from idbg.engine.compat.hooks import Feature, hooked
from idbg.engine.compat.names import find

_Call = Callable[..., object]
HEADER, CPU_CHECK = "precompiled header", "cpu check"
KEY, LOOK_UP, SAVE = "cache key", "cache look-up", "cache save"  # of the FX graph cache


class Builds(Protocol):
    """Receives the steps of builds."""

    def began(self, step: str, subject: str) -> None:
        """One of the steps above begins on this thread."""

    def ended(self, step: str) -> None:
        """The last such step on this thread is over."""

    def submitted(self, build: int, kernel: str) -> None:
        """A kernel goes to a process of the pool; the same build again: with its final name."""

    def returned(self, build: int, seconds: float | None) -> None:
        """The build is over, on any thread. `seconds` in the pool, None where it failed."""


class _Current(threading.local):
    kernel = ""


_current = _Current()


def kernel_name() -> str:
    """The kernel that is built on this thread; "" where it is unknown."""
    return _current.kernel


@contextmanager
def _named(kernel: str) -> Iterator[None]:
    before, _current.kernel = _current.kernel, kernel
    try:
        yield
    finally:
        _current.kernel = before


def start_pool(devices: Iterable[torch.device]) -> None:
    """Start torch's pool of compilers if one of these devices runs Triton's kernels, as far as torch's settings allow.

    Torch starts it with its first compile, takes 5 s to have it ready, and builds kernels one by one meanwhile.
    """
    if all(device.type in ("cpu", "meta") for device in devices):
        return
    with suppress(ImportError, AttributeError):
        find("torch._inductor.async_compile.maybe_warm_pool")()


def observe_builds(feature: Feature, listener: Builds) -> AbstractContextManager[None]:
    """While it lasts, `kernel_name` knows the kernel, and `listener` hears of what torch does not time itself."""

    def triton(call: _Call, compiler: object, name: str, *args: object, **kwargs: object) -> object:
        """A Triton kernel is built here, or in the pool: then it has a future, which may be one of an earlier call."""
        with _named(name):
            built = call(compiler, name, *args, **kwargs)
        future: Any = getattr(built, "future", None)
        if future is not None and not getattr(future, "idbg_observed", False):
            future.idbg_observed = True
            listener.submitted(id(future), name)
            future.add_done_callback(feature.safe(lambda done: listener.returned(id(done), _pool_seconds(done))))
        elif future is not None and not future.done():
            listener.submitted(id(future), name)
        return built

    def timed(step: str, *, has_subject: bool = False) -> _Call:
        """`has_subject`: the first argument is what the step works on."""

        def step_timed(call: _Call, *args: object, **kwargs: object) -> object:
            listener.began(step, str(args[0]) if has_subject and args else "")
            try:
                with _named(""):
                    return call(*args, **kwargs)
            finally:
                listener.ended(step)

        return step_timed

    wrappers: dict[str, _Call] = {
        "AsyncCompile.cpp": _named_by_caller,
        "AsyncCompile.cpp_pybinding": _named_by_caller,
        "AsyncCompile.triton": triton,
        "AsyncCompile.submit": _submit,
        "_precompile_header": timed(HEADER, has_subject=True),
        "VecISA.check_build": timed(CPU_CHECK, has_subject=True),
        "FxGraphCache.prepare_key": timed(KEY),
        "FxGraphCache._lookup_graph": timed(LOOK_UP),
        "FxGraphCache._save_graph": timed(SAVE),
    }
    return hooked(feature, wrappers)


def _named_by_caller(call: _Call, *args: object, **kwargs: object) -> object:
    """A C++ kernel is built without its name, which is the variable that the output code assigns it to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    with _named(_variable(frame.f_code.co_filename, frame.f_lineno) if frame else ""):
        return call(*args, **kwargs)


def _submit(call: _Call, cls: object, task: Callable[[], object]) -> object:
    """A thread of torch's pool builds the kernel of the thread that submits the task."""
    kernel = kernel_name()

    def named() -> object:
        with _named(kernel):
            return task()

    return call(cls, named)


def _variable(file: str, line: int) -> str:
    try:
        with Path(file).open(encoding="utf-8") as lines:
            text = next((text for number, text in enumerate(lines, 1) if number == line), "")
    except OSError:
        return ""
    name, assigned, _ = text.partition(" = ")
    return name if assigned and name.isidentifier() else ""


def _pool_seconds(future: Any) -> float | None:
    """The seconds that the process of the pool reports: it returns the kernel, and microseconds."""
    if future.cancelled() or future.exception() is not None:
        return None
    answer = future.result()
    microseconds = answer[1] if isinstance(answer, tuple) and len(answer) == 2 else None
    return microseconds / 1e6 if isinstance(microseconds, int | float) else None
