"""The worker process: imports torch once, then does the host's requests and reports everything as events.

Compile and run happen on the main thread (torch 2.11 crashed running a backward in a second one); a thread reads
the requests, so that the end of the host is seen also while a compile runs.
"""

import _thread
import contextlib
import ctypes
import errno
import faulthandler
import fcntl
import gc
import importlib
import os
import platform
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from idbg.config import places
from idbg.engine.compat.builds import scratch
from idbg.engine.compat.hook_table import is_untried
from idbg.schema import event_log, events
from idbg.schema.events import SessionEvent
from idbg.worker import crash_site, protocol
from idbg.worker.child import COMMAND, forget_ours
from idbg.worker.protocol import Compile, EditKernel, Request
from idbg.worker.traced import TracedJobs

if TYPE_CHECKING:
    from idbg.worker.jobs import Jobs

Emit = Callable[[SessionEvent], None]


_CLOSED = b"idbg: the program closed a file descriptor that is not its own: idbg gets no more of its events\n"


class Pipe:
    """The event pipe. Events are whole lines, whatever thread they come from."""

    def __init__(self, fd: int) -> None:
        self._file = os.fdopen(fd, "wb", buffering=0)
        self._lock = threading.Lock()

    def emit(self, event: SessionEvent) -> None:
        """Write the event as one line, after those that others write meanwhile."""
        rest = memoryview(event_log.encode(event) + b"\n")
        with self._lock:
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
                os.write(2, _CLOSED)
                os._exit(1)  # no event can be sent any more


def main() -> None:
    """Do one request after another until the host is gone."""
    began = time.monotonic()
    gc.disable()  # until torch is imported: looking for garbage in it takes a second, a quarter of the import
    environment = dict(os.environ)
    request_fd, event_fd = map(_out_of_the_way, map(int, sys.argv[1:3]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # between jobs there is nothing to cancel
    nice = forget_ours()
    if len(sys.argv) == 3:  # not begun again: niceness would add up
        os.nice(nice)
    pipe = Pipe(event_fd)
    requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
    if len(sys.argv) > 3:
        requests.put(protocol.decode(sys.argv[3].encode()))
    _thread.start_new_thread(_read_requests, (request_fd, requests))  # none of threading's: a program counts those
    _check_cache(pipe.emit)
    scratch.begin(lambda text: pipe.emit(events.Noted(level="warning", text=text)))
    leave_stacks(scratch.private.folder)

    import torch

    started = events.WorkerStarted(
        pid=os.getpid(),
        torch=str(torch.__version__),
        python=platform.python_version(),
        devices=("cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))),
        seconds=time.monotonic() - began,
        captures="untried" if is_untried(str(torch.__version__)) else "all",
    )
    jobs: Jobs | TracedJobs
    try:
        jobs = _jobs(pipe.emit, started, is_first=len(sys.argv) == 3, is_watched=bool(nice), is_idle=requests.empty())
    # Broad on purpose: a torch that does not exist yet may break any import of the engine
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        pipe.emit(replace(started, captures="trace", why=why))
        jobs = TracedJobs(pipe.emit, why)
    gc.freeze()
    gc.enable()
    while True:
        request = requests.get()
        if isinstance(request, Compile | EditKernel) and jobs.is_spent(request):
            _begin_again(request, (request_fd, event_fd), environment)
        _run(request, jobs, pipe.emit)


def _jobs(emit: Emit, started: events.WorkerStarted, *, is_first: bool, is_watched: bool, is_idle: bool) -> "Jobs":
    """Load the engine, and report what it knows of this machine. Raises what a torch that does not fit raises."""
    from idbg.engine import backends
    from idbg.engine.compat.names import check_core
    from idbg.engine.decisions.switches import switches
    from idbg.engine.program.machine import machine
    from idbg.worker.jobs import Jobs

    check_core()
    known = machine() if is_first else None  # begun again it is the same
    listed = events.SwitchesListed(switches=tuple(switches())) if is_watched and is_first else None
    emit(replace(started, backends=backends.known(), machine=known))
    if listed is not None:  # a screen watches, and does not have them yet
        emit(listed)
    if is_idle:
        importlib.import_module("torch._inductor.compile_fx")  # takes seconds: before the first compile needs it
    return Jobs(emit)


def _out_of_the_way(fd: int) -> int:
    """The pipe under a number that a program does not reach which closes the first hundreds: os.closerange(3, 256)."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    above = min(most if most != resource.RLIM_INFINITY else 4096, 4096) - 16
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    except OSError:  # none is free up there
        os.set_inheritable(fd, False)
        return fd
    os.close(fd)
    return moved


def _check_cache(emit: Emit) -> None:
    """Importing torch makes Inductor's cache, and ends in a traceback where it cannot: say it before, in a sentence."""
    folder = places.inductor_cache(os.environ)
    hint = "name another with TORCHINDUCTOR_CACHE_DIR, then run it again"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        emit(events.Noted(level="error", text=f"Inductor's cache {folder} cannot be made: {error.strerror}\n{hint}"))
        os._exit(1)
    if not os.access(folder, os.W_OK | os.X_OK):
        text = f"Inductor's cache {folder} cannot be written, so no kernel can be built: {hint}"
        emit(events.Noted(level="warning", text=text))


def leave_stacks(folder: Path | None) -> None:
    """Have Python write its stacks to the host's folder as a signal kills this process."""
    if folder is not None:
        faulthandler.enable(os.open(folder / crash_site.STACKS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))


def _begin_again(request: Compile | EditKernel, fds: tuple[int, int], environment: dict[str, str]) -> NoReturn:
    """Do the request in a process image in which nothing has run yet: same process, same pipes, torch imported anew."""
    for fd in fds:
        os.set_inheritable(fd, True)
    flush()
    command = [*COMMAND, *map(str, fds), protocol.encode(request).decode()]
    os.execve(sys.executable, command, environment)


def _run(request: Request, jobs: "Jobs | TracedJobs", emit: Emit) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ended = jobs.do(request)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    flush()
    emit(ended)


def _read_requests(fd: int, requests: "queue.SimpleQueue[Request]") -> None:
    with contextlib.suppress(OSError), os.fdopen(fd, "rb") as pipe:  # the program may close it: then nothing more comes
        for line in pipe:
            requests.put(protocol.decode(line))
    end()


def end() -> NoReturn:
    """End this process and all that it started, compilers too, as the host is gone."""
    if (multiprocessing := sys.modules.get("multiprocessing.util")) is not None:  # else its tracker warns of leaks
        clean = threading.Thread(target=multiprocessing._run_finalizers, daemon=True)
        clean.start()
        clean.join(0.5)
    if os.getpgrp() == os.getpid():  # not in somebody else's group, as when run by hand
        os.killpg(os.getpgrp(), signal.SIGTERM)  # compilers delete what they have half-written; we end here too,
        time.sleep(0.5)  # unless the program took the signal for itself
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def end_with_host(fd: int) -> None:
    """End this process when the host closes its end of the pipe, which it never writes to."""

    def watch() -> None:
        os.read(fd, 1)
        end()

    threading.Thread(target=watch, daemon=True).start()


def flush() -> None:
    """Write out what the program printed: that goes before the event that says it ended."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # the program closed it, or put None there
            stream.flush()
    ctypes.CDLL(None).fflush(None)
