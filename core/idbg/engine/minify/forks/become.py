"""How does a process that was forked become `python FILE`, to its end?"""

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

KEEPS_DEATH = 1  # prctl's PR_SET_PDEATHSIG
_TRACEBACK_FRAMES = 2  # ours, above those of the script


def stand_alone(output: int) -> None:
    """Be a process in a session of its own, that prints to `output`, reads nothing, and ends with who forked it."""
    os.setsid()
    ctypes.CDLL(None).prctl(KEEPS_DEATH, signal.SIGKILL)
    empty = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((empty, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    os.close(empty)
    os.close(output)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # where memory is short, the kernel takes this one before who asked for it


def become(script: str, arguments: Sequence[str], path: Sequence[str], cwd: str) -> NoReturn:
    """Run the script as `__main__`, and exit as Python would. Its modules are looked for beside it, then in `path`."""
    os.chdir(cwd)
    sys.argv = [script, *arguments]
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *path]
    importlib.invalidate_caches()
    linecache.checkcache()
    tempfile.tempdir = None
    _draw_anew()
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
    """So that what a script said before it crashed is there, and both streams in their order."""
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(raw, errors=errors, write_through=True)


def _run(script: str) -> int:
    try:
        run_file(script)
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            print(words_of(error.code), file=sys.stderr)
        return status_of(error.code)
    except BaseException as error:  # as Python does with whatever ends a script
        trace = error.__traceback__
        for _ in range(_TRACEBACK_FRAMES):
            trace = trace.tb_next if trace is not None else None
        try:
            sys.excepthook(type(error), error.with_traceback(trace), trace)
        except SystemExit as end:  # a script's own hook decides on the status
            return status_of(end.code)
        return 1
    return 0


def _draw_anew() -> None:
    """Random numbers that nobody seeded differ from process to process."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
