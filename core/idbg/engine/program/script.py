"""Run a script as `python FILE` does, and end it as Python would: its threads, exit handlers and status."""

import atexit
import concurrent.futures.thread
import functools
import gc
import os
import runpy
import sys
import sysconfig
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from idbg.engine.capture.run import RunCapture, phase
from idbg.engine.program.main_file import run_file, status_of, words_of
from idbg.schema.programs import Program

_STDLIB = sysconfig.get_path("stdlib")
_LIBRARIES = ("site-packages", "dist-packages", _STDLIB)
_POLL = 0.01  # seconds
UNFLUSHED = 120
"""The status with which Python ends where it cannot write what is left in sys.stdout."""
_Handler = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]


def run_script(program: Program, capture: RunCapture) -> object:
    """Run it to its end; returns the argument of its sys.exit, if any. Raises what else the script raises. A fork of
    this process that comes to the script's end (os.fork) ends here, as it does without idbg.
    """
    process = os.getpid()
    try:
        code = _run_to_its_end(program, capture)
    except BaseException as error:
        if os.getpid() == process:
            raise
        _print_as_of_main(error)
        code = 1
    flushed = _flushed()
    if os.getpid() != process:
        os._exit(status_of(code) & 0xFF if flushed else UNFLUSHED)
    return code if flushed else UNFLUSHED


def _print_as_of_main(error: BaseException) -> None:
    """Print the traceback from the main program's frame on, as Python does."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)


def _flushed() -> bool:
    """Whether its output could be written; the reason goes to the process's stderr, whatever sys.stderr is."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError as error:
        os.write(2, f"what the script printed could not be written: {error}\n".encode())
        return False
    return True


def _run_to_its_end(program: Program, capture: RunCapture) -> object:
    with phase(capture, "run"), _globals_deleted(), _exit_handlers_run(), _threads_joined():
        try:
            if program.module:
                runpy.run_module(program.path, run_name="__main__", alter_sys=True)
            else:
                run_file(program.path)
        except SystemExit as error:
            if error.code is not None and not isinstance(error.code, int):
                print(words_of(error.code), file=sys.stderr)  # as Python does
            return error.code
    return None


@contextmanager
def _globals_deleted() -> Iterator[None]:
    """On exit, delete the globals with a `__del__`, as Python does at its end unless torch holds them; no others,
    because repros may need them.
    """
    try:
        yield
    finally:
        names = sys.modules["__main__"].__dict__
        for name in [name for name, value in names.items() if hasattr(type(value), "__del__")]:
            del names[name]
        gc.collect()


@contextmanager
def _threads_joined() -> Iterator[None]:
    """On exit, wait for the threads that were started meanwhile, as Python does at its end. Threads of executors wait
    for work until the process ends: of them only the work is waited for.
    """
    before = set(threading.enumerate())
    try:
        yield
    finally:
        started = set(threading.enumerate()) - before - {threading.current_thread()}
        queues = concurrent.futures.thread._threads_queues
        of_executors = {thread for thread in started if thread in queues}
        of_processes = {thread for thread in started if hasattr(thread, _PENDING)}
        while any(getattr(thread, _PENDING) for thread in of_processes):
            time.sleep(_POLL)
        _wait_for_work(of_executors)
        for thread in started - of_executors - of_processes:
            if not thread.daemon:
                thread.join()


_PENDING = "pending_work_items"
"""What the thread of a ProcessPoolExecutor has to do still."""


def _wait_for_work(threads: set[threading.Thread]) -> None:
    """Wait until these threads of executors have done all that was submitted so far."""
    idle: set[threading.Thread] = set()
    go_on = threading.Event()

    class Last:
        """Work that comes after all other of its queue: each thread stays in it until all of them are there."""

        def run(self, *_: object) -> None:
            idle.add(threading.current_thread())
            go_on.wait()

    for thread in threads:
        concurrent.futures.thread._threads_queues[thread].put(Last())
    while any(thread.is_alive() for thread in threads - idle):
        time.sleep(_POLL)
    go_on.set()


@contextmanager
def _exit_handlers_run() -> Iterator[None]:
    """On exit, run what the program has registered with `atexit`, last first, then its finalizers (weakref.finalize,
    also of temporary folders). Those of libraries wait for the end of the process, and what is registered meanwhile is
    not run, as Python does not.
    """
    handlers: list[_Handler] = []
    finalizers: list[weakref.finalize[..., object]] = []
    register, unregister, begin = atexit.register, atexit.unregister, weakref.finalize.__init__

    def register_here(function: Callable[..., object], /, *args: object, **kwargs: object) -> Callable[..., object]:
        caller = sys._getframe(1).f_code.co_filename
        if any(folder in caller for folder in _LIBRARIES) or caller.startswith("<"):
            return register(function, *args, **kwargs)
        handlers.append((function, args, kwargs))
        return function

    def unregister_here(function: Callable[..., object], /) -> None:
        handlers[:] = [handler for handler in handlers if handler[0] != function]
        unregister(function)

    def begin_here(self: "weakref.finalize[..., object]", *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if _is_of_program(sys._getframe(1)):
            finalizers.append(self)

    atexit.register, atexit.unregister = register_here, unregister_here  # type: ignore[assignment]
    weakref.finalize.__init__ = begin_here  # type: ignore[assignment]
    try:
        yield
    finally:
        last: list[_Handler] = [(each, (), {}) for each in finalizers if each.atexit]
        for handler in reversed([*last, *handlers]):
            if not any(each is handler for each in (*last, *handlers)):  # another one has unregistered it
                continue
            function, args, kwargs = handler
            try:
                function(*args, **kwargs)
            except SystemExit:
                pass
            except Exception:  # as Python does at its end: printed, and the next one runs
                traceback.print_exc()
        atexit.register, atexit.unregister = register, unregister
        weakref.finalize.__init__ = begin  # type: ignore[method-assign]


def _is_of_program(frame: FrameType | None) -> bool:
    """Whether the code that is called here is the program's, through the standard library too."""
    while frame is not None and frame.f_code.co_filename.startswith((_STDLIB, "<frozen")):
        frame = frame.f_back
    return frame is not None and not any(folder in frame.f_code.co_filename for folder in _LIBRARIES)


@contextmanager
def process_end_reported(tell: Callable[[int | None], None]) -> Iterator[None]:
    """While it lasts, `tell` is called with the status if this process, and not a fork, ends by os._exit; with None if
    another program replaces it (os.exec). One that cannot be started is not reported.
    """
    real, process = {name: getattr(os, name) for name in ("_exit", "execv", "execve")}, os.getpid()

    def exit_reported(status: int) -> None:
        if os.getpid() == process:
            tell(status)
        real["_exit"](status)

    def reporting(start: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(start)
        def exec_reported(path: int | str | bytes | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
            if os.getpid() == process and os.access(path, os.X_OK):
                tell(None)
            start(path, *args, **kwargs)

        return exec_reported

    os._exit = exit_reported  # type: ignore[assignment]
    os.execv, os.execve = reporting(os.execv), reporting(os.execve)  # type: ignore[assignment]
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
