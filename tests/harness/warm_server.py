"""A Python that has imported torch, and becomes whatever Python is asked of it: `python warm_server.py SOCKET OWNER`.

Importing torch and its compilers takes 4 s of a processor, in each process that a test starts. This one forks: for each
connection a child that has the arguments, environment, folder and open files that it was sent, and a keeper that tells
its pid and how it ended. It computes nothing itself, and ends with the process OWNER.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import importlib.util
import io
import json
import os
import random
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable
from pathlib import Path
from select import select
from typing import NoReturn

OURS = ("idbg.worker.main", "idbg.worker.jobs", "idbg.cli", "idbg.engine.minify.forks.server")
AT_IMPORT = "IDBG_NATIVE"  # what a module of ours reads in the environment when it is imported
READ = ("OMP_", "PYTHONHASHSEED", "CXX", "TMPDIR", "TORCHINDUCTOR_CPP", "TORCH_", "LD_", "PATH")  # when they begin
began = dict(os.environ)
aside: dict[str, types.ModuleType] = {}
LARGEST = 1 << 20  # bytes of a request
FILES = 64


def serve(path: str, owner: int) -> Callable[[], None]:
    """Answer until the owner is gone. In a child: what it has to do."""
    ends = os.pidfd_open(owner)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen(64)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are nobody's to bury
    while True:
        ready, _, _ = select([listening.fileno(), ends], [], [])
        if ends in ready:
            shutil.rmtree(os.path.dirname(path), ignore_errors=True)
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return keep(connection)
        connection.close()


def keep(connection: socket.socket) -> Callable[[], None]:
    """In the keeper: tell of a child until it has ended. In that child: what it has to do."""
    message, files, _, _ = socket.recv_fds(connection, LARGEST, FILES)
    request = json.loads(message)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        if request["session"]:
            os.setsid()
        connection.send(str(os.getpid()).encode())
        connection.close()
        take(dict(zip(request["files"], files, strict=True)))
        return lambda: become(request)
    for file in (*files, 0, 1, 2):
        os.close(file)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # who asked has gone
        connection.send(str(status).encode())
    os._exit(0)


def take(files: dict[int, int]) -> None:
    """Have these files under the numbers that they have in the process that asks, and no other."""
    above = max(files) + len(files) + 100
    moved = {number: fcntl.fcntl(file, fcntl.F_DUPFD, above) for number, file in files.items()}
    for number in moved:
        os.dup2(moved[number], number)
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in files:
            with contextlib.suppress(OSError):  # the folder's own
                os.close(int(entry))


def become(request: dict[str, object]) -> None:
    """Be the Python that was asked for, to its end."""
    argv, environ = list(request["argv"]), dict(request["env"])  # type: ignore[call-overload]
    os.chdir(str(request["cwd"]))
    base = [entry for entry in sys.path[1:] if entry not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ.clear()
    os.environ.update(environ)
    own = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    random.seed()
    tempfile.tempdir = None
    if AT_IMPORT not in environ and any("idbg" in word for word in argv[:3]):
        sys.modules.update(aside)
        os.execv = functools.partial(execute, os.execv)  # type: ignore[assignment]
    if threads := environ.get("TORCHINDUCTOR_COMPILE_THREADS"):  # torch reads it as it is imported
        sys.modules["torch._inductor.config"]._config["compile_threads"].default = int(threads)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    give_streams("PYTHONUNBUFFERED" in environ)
    unsafe = argv[0] != "-P"
    argv = argv if unsafe else argv[1:]
    if request["server"]:
        spec = importlib.util.spec_from_file_location("warm", Path(__file__).with_name("warm.py"))
        warm = sys.modules["warm"] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(warm)  # type: ignore[union-attr]
        warm.server.path = str(request["server"])
        subprocess.Popen = warm.WarmPopen  # type: ignore[misc]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if argv[0] == "-m":
        sys.path[:] = [os.getcwd()] * unsafe + own + base
        sys.argv = argv[1:]
        importlib.invalidate_caches()
        runpy._run_module_as_main(argv[1])  # type: ignore[attr-defined]
    elif argv[0] == "-c":
        sys.path[:] = [""] * unsafe + own + base
        sys.argv = ["-c", *argv[2:]]
        exec(compile(argv[1], "<string>", "exec"), main.__dict__)
    else:
        sys.path[:] = [os.path.dirname(os.path.abspath(argv[0]))] * unsafe + own + base
        sys.argv = argv
        main.__file__ = argv[0]
        with open(argv[0], "rb") as file:
            exec(compile(file.read(), argv[0], "exec"), main.__dict__)


def execute(cold: Callable[[str, list[str]], None], path: str, argv: list[str]) -> None:
    """`os.execv` of a process of ours: a script that it runs in a Python of its own has torch imported as well, but
    where it sets up torch before it imports it.
    """
    from idbg.config.environment import sets_up_torch

    if path != sys.executable or argv[1:4] != ["-u", "-P", "-m"] or sets_up_torch(Path(argv[6])) or is_other():
        cold(path, argv)
        return
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the folder's own
            if not os.get_inheritable(int(entry)):
                os.close(int(entry))
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    end(lambda: become({"argv": argv[2:], "env": environ, "cwd": os.getcwd(), "server": ""}))


def end(work: Callable[[], None]) -> NoReturn:
    """Do it, and end as Python does, but for taking its modules apart: half a second of a processor with torch."""
    status, interrupted = 1, False
    try:
        work()
        status = 0
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        status = error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # nobody reads it; or the program closed it, or put None there
            status = status if getattr(stream, "closed", True) else 120
    ctypes.CDLL(None).fflush(None)
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def is_other() -> bool:
    """Whether a new Python, or torch imported anew, would read something else in the environment than this one did."""
    now, then = ({k: v for k, v in each.items() if k.startswith(READ)} for each in (dict(os.environ), began))
    return now != then


def give_streams(unbuffered: bool) -> None:
    """Streams of this process's own files, buffered as those of a Python that has just begun."""

    def writes(file: int, errors: str, buffered: bool) -> io.TextIOWrapper:
        raw = open(file, "wb", 0 if unbuffered else -1, closefd=False)  # noqa: SIM115
        eager = {"write_through": unbuffered, "line_buffering": not buffered or os.isatty(file)}
        return io.TextIOWrapper(raw, errors=errors, **eager)  # type: ignore[arg-type]

    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = writes(1, "strict", True)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = writes(2, "backslashreplace", False)  # type: ignore[misc]


def warm_up() -> None:
    """As our own process that forks does it, but for backends: which packages offer some depends on the child's path.
    What is ours is put aside for the children that are ours.
    """
    from idbg.engine.compat import warming

    warming._backends = lambda: None
    warming.warm_up()
    for name in OURS:
        importlib.import_module(name)
    aside.update({name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "idbg"})


if __name__ == "__main__":
    gc.disable()
    warm_up()
    gc.freeze()  # no child looks through all of it, nor copies it
    gc.enable()
    gc.set_threshold(20_000, 20, 50)
    end(serve(sys.argv[1], int(sys.argv[2])))
