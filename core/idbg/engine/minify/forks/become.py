"""Make a forked process behave like `python FILE`."""

import atexit
import contextlib
import ctypes
import importlib
import io
import linecache
import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import NoReturn

from idbg.engine.program.main_file import run_file, status_of, words_of

PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG
_TRACEBACK_FRAMES = 2  # idbg's, above those of the script


def detach(output: int) -> None:
    """Put the process into a session of its own. It prints to `output`, has no stdin, and ends with its parent."""
    os.setsid()
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    empty = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((empty, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    os.close(empty)
    os.close(output)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # if memory runs out, the kernel kills this process before its parent


def become(script: str, arguments: Sequence[str], path: Sequence[str], cwd: str) -> NoReturn:
    """Run the script as `__main__`, and exit as Python would. Modules are found beside it, then in `path`."""
    os.chdir(cwd)
    sys.argv = [script, *arguments]
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *path]
    importlib.invalidate_caches()
    linecache.checkcache()
    tempfile.tempdir = None
    _seed_anew()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _unbuffered(1, "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _unbuffered(2, "backslashreplace")  # type: ignore[misc]
    status = 1
    try:
        status = _run(script)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # the script closed it
                stream.flush()
        ctypes.CDLL(None).fflush(None)
        os._exit(status)


def _unbuffered(number: int, errors: str) -> io.TextIOWrapper:
    """Unbuffered, so that the output before a crash is complete, and both streams are in order."""
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, errors=errors, write_through=True)


def _run(script: str) -> int:
    try:
        run_file(script)
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            print(words_of(error.code), file=sys.stderr)
        return status_of(error.code)
    except BaseException as error:  # as Python handles any exception that ends a script
        trace = error.__traceback__
        for _ in range(_TRACEBACK_FRAMES):
            trace = trace.tb_next if trace is not None else None
        try:
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        except SystemExit as end:  # the script's own hook sets the exit status
            return status_of(end.code)
        return 1
    return 0


def _seed_anew() -> None:
    """Unseeded random numbers must differ from process to process."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
