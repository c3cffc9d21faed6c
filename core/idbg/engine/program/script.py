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
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from idbg.engine.capture.run import RunCapture, phase
from idbg.engine.program.main_file import run_file, status_of, words_of
from idbg.schema.programs import Program

_LIBRARIES = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
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
    for work until the process ends.
    """
    before = set(threading.enumerate())
    try:
        yield
    finally:
        executors = concurrent.futures.thread._threads_queues
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon and thread not in executors and thread is not threading.current_thread():
                thread.join()


@contextmanager
def _exit_handlers_run() -> Iterator[None]:
    """On exit, run what the program has registered with `atexit`, last first; handlers of libraries wait for the end of
    the process.
    """
    handlers: list[_Handler] = []
    register, unregister = atexit.register, atexit.unregister

    def register_here(function: Callable[..., object], /, *args: object, **kwargs: object) -> Callable[..., object]:
        caller = sys._getframe(1).f_code.co_filename
        if any(folder in caller for folder in _LIBRARIES) or caller.startswith("<"):
            return register(function, *args, **kwargs)
        handlers.append((function, args, kwargs))
        return function

    def unregister_here(function: Callable[..., object], /) -> None:
        handlers[:] = [handler for handler in handlers if handler[0] != function]
        unregister(function)

    atexit.register, atexit.unregister = register_here, unregister_here  # type: ignore[assignment]
    try:
        yield
    finally:
        while handlers:
            function, args, kwargs = handlers.pop()
            try:
                function(*args, **kwargs)
            except SystemExit:
                pass
            except Exception:  # as Python does at its end: printed, and the next one runs
                traceback.print_exc()
        atexit.register, atexit.unregister = register, unregister


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
