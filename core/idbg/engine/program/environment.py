"""Set up the environment of a program as if it ran by itself: argv, folder, import path, torch's settings."""

import importlib
import linecache
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from idbg.engine.compat import gpu
from idbg.schema.programs import Program


@contextmanager
def as_main(program: Program) -> Iterator[None]:
    """Set argv, the working folder and the import path for the program. Afterwards no signal reaches it any more."""
    argv, path, folder, main = sys.argv, list(sys.path), os.getcwd(), sys.modules["__main__"]
    cwd = program.cwd or folder
    os.chdir(cwd)
    sys.argv = [program.path, *program.argv]
    sys.path.insert(0, cwd if program.module else str(Path(program.path).resolve().parent))
    linecache.checkcache()
    importlib.invalidate_caches()
    try:
        with _signals_restored():
            yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = argv, path, main
        os.chdir(folder)


@contextmanager
def _signals_restored() -> Iterator[None]:
    """On exit, restore the handlers of signals, and stop timers: of a program that has ended nothing runs any more."""
    if threading.current_thread() is not threading.main_thread():  # only it may set them
        yield
        return
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield
    finally:
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) != handler:  # None: it was not set from Python
                signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@contextmanager
def state_restored() -> Iterator[None]:
    """Restore random generators, default dtype and device, grad mode and matmul precision."""
    generators = random_states()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    grad, precision = torch.is_grad_enabled(), torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        generators()
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_grad_enabled(grad)
        if torch.get_float32_matmul_precision() != precision:  # setting it as it is misses every cached graph: 2.14
            torch.set_float32_matmul_precision(precision)


def random_states() -> Callable[[], None]:
    """A function that resets Python's, numpy's and torch's random generators to their present state."""
    python, torch_state = random.getstate(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if gpu.in_use() else None
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None

    def put_back() -> None:
        random.setstate(python)
        torch.set_rng_state(torch_state)
        if cuda is not None and not gpu.is_lost():
            torch.cuda.set_rng_state_all(cuda)
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)

    return put_back
