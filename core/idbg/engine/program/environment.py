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
from functools import partial
from pathlib import Path
from typing import Any

import torch

from idbg.engine.compat import gpu
from idbg.schema.programs import Program

_REDUCED = (
    "allow_tf32",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
)


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
    """Restore random generators, default dtype and device, grad mode, matmul precision and the switches of backends."""
    generators = random_states()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    grad = torch.is_grad_enabled()
    switches = [(get, put, _read(get)) for get, put in _switches()]
    try:
        yield
    finally:
        generators()
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device.type == "cpu" else device)
        torch.set_grad_enabled(grad)
        for get, put, before in (*switches, *switches):  # one of two names of a switch may set the other as well
            # setting the matmul precision as it is misses every cached graph: 2.14
            if before is not None and _read(get) != before:
                put(before)


def _switches() -> list[tuple[Callable[[], Any], Callable[[Any], object]]]:
    """What reads and what sets each switch by which a program chooses how backends compute, in any order."""
    backends = torch.backends
    named: list[tuple[object, tuple[str, ...]]] = [
        *((part, ("fp32_precision",)) for part in _parts_with_precision()),
        (backends.cuda.matmul, _REDUCED),
        (backends.cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
        (backends.mkldnn, ("enabled", "deterministic")),
    ]
    sdp = ("flash", "mem_efficient", "math", "cudnn")
    return [
        *((partial(getattr, owner, name), partial(setattr, owner, name)) for owner, names in named for name in names),
        *(
            (getattr(backends.cuda, f"{name}_sdp_enabled"), getattr(backends.cuda, f"enable_{name}_sdp"))
            for name in sdp
        ),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    ]


def _parts_with_precision() -> list[object]:
    """The parts of torch.backends whose float32 may be computed in less; none in a torch that has no such setting."""
    backends = torch.backends
    parts = [
        backends.cuda.matmul,
        *(
            getattr(each, name, None)
            for each in (backends.cudnn, backends.mkldnn)
            for name in ("conv", "rnn", "matmul")
        ),
    ]
    return [part for part in parts if getattr(part, "fp32_precision", None) is not None]


def _read(get: Callable[[], Any]) -> Any:
    """The value of a switch; None where torch refuses to read it, as it was set by both of its names."""
    try:
        return get()
    except RuntimeError:
        return None


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
