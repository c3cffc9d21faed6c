"""Capture this process into the folder of a session, from the first thing that it compiles."""

from __future__ import annotations

import os
import sys

from .passing import (
    FOLDER,
    PATH,
    PROCESSES,
    TRACE,
    VARIABLE,
    Inheritance,
    own_rank,
    traces,
    without_folder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all of this
    import logging
    from collections.abc import Callable
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

OLDEST_PYTHON, OLDEST_TORCH = (3, 11), (2, 11)  # with which idbg runs

inheritance: Inheritance | None = None
"""This process's, while it passes anything on."""
_watches_forks = False


def pass_on(session: str, parent_rank: str = "", forked: Callable[[], None] | None = None) -> None:
    """Have the processes that this one starts captured into the session's folder, until `stop`."""
    global inheritance, _watches_forks
    inheritance = Inheritance(session, parent_rank, forked)
    inheritance.begin()
    if not _watches_forks:
        _watches_forks = True
        os.register_at_fork(after_in_child=_after_fork)


def stop() -> None:
    """Let this process start others as without idbg."""
    global inheritance
    if inheritance is not None:
        inheritance.end()
        inheritance = None


def _after_fork() -> None:
    """This process is a fork of one that is captured: its log is its own."""
    if inheritance is None:
        return
    if inheritance.forked is not None:
        inheritance.forked()
    inheritance.parent_rank = own_rank()
    own = sys.modules.get("idbg.own_process")
    if own is not None:
        own.forget()
    if "torch._logging._internal" in sys.modules:
        _arm()


def start() -> None:
    """Python starts: hide what leads here, and wait for torch."""
    rank, _, session = os.environ.pop(VARIABLE, "").partition("|")
    if PATH in os.environ:
        os.environ[PATH] = os.pathsep.join(without_folder(os.environ[PATH]))
        if not os.environ[PATH]:
            del os.environ[PATH]
    if os.environ.get(TRACE) == traces(session):
        del os.environ[TRACE]
    sys.path[:] = [each for each in sys.path if each != FOLDER]
    if session and os.path.isdir(session):
        pass_on(session, rank)
        sys.meta_path.insert(0, _TorchAwaited())


class _TorchAwaited:
    """Waits for the import of torch: after it, for a compile. Where idbg cannot be imported, torch traces itself."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _TorchLoader(spec.loader)  # type: ignore[assignment]
        return spec


class _TorchLoader:
    """Torch's loader, which does something before and after the import."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert inheritance is not None
        spec.loader = module.__loader__ = self._loader
        traces_itself = TRACE not in os.environ and not _can_import_idbg(spec.origin or "")
        if traces_itself:
            os.environ[TRACE] = traces(inheritance.session)
        try:
            self._loader.exec_module(module)
        finally:
            if traces_itself:
                del os.environ[TRACE]
                os.putenv(TRACE, traces(inheritance.session))
        if not traces_itself and _is_rank(inheritance.parent_rank):
            _capture(inheritance)
        elif not traces_itself:
            _arm()


def _is_rank(parent_rank: str) -> bool:
    """Whether this process is a rank of a job: such a one is captured also while it compiles nothing."""
    return own_rank() not in ("", parent_rank)


def _can_import_idbg(torch_file: str) -> bool:
    import importlib.util

    if sys.version_info < OLDEST_PYTHON or _torch_version(torch_file) < OLDEST_TORCH:
        return False
    return importlib.util.find_spec("msgspec") is not None


def _torch_version(torch_file: str) -> tuple[int, int]:
    """The version of the torch that is to be imported; (0, 0) where it is not known."""
    try:
        with open(os.path.join(os.path.dirname(torch_file), "version.py"), encoding="utf-8") as file:
            (line,) = (each for each in file if each.startswith("__version__ = "))
        major, minor = line.partition(" = ")[2].strip("'\"\n").split(".")[:2]
        return int(major), int(minor)
    except (OSError, ValueError):
        return 0, 0


def _arm() -> None:
    """Begin the capture at the first record of torch's trace from now on: then something is compiled."""
    import logging

    log: logging.Logger = sys.modules["torch._logging._internal"].trace_log
    assert inheritance is not None
    passed_on: Inheritance = inheritance

    class FirstRecord(logging.Handler):
        is_over = False

        def emit(self, record: logging.LogRecord) -> None:
            if self.is_over or passed_on.waiting is not self:
                return
            self.is_over = True
            before = list(log.handlers)
            _capture(passed_on)
            begun = [each for each in log.handlers if each not in before]
            here = before.index(self) + 1  # torch's own may remove itself: then the one after it misses the record
            log.handlers[:] = [*before[:here], *begun, *before[here:]]

    passed_on.waiting = FirstRecord()
    log.handlers.insert(0, passed_on.waiting)


def _capture(passed_on: Inheritance) -> None:
    """Begin this process's own log."""
    import importlib

    root = os.path.dirname(os.path.dirname(FOLDER))
    sys.path.append(root)  # where idbg is not installed for this Python
    try:
        own_process: Any = importlib.import_module("idbg.own_process")
        own_process.begin_inherited(passed_on.session, passed_on.parent_rank)
    # Broad on purpose: whatever is wrong with idbg in this Python must not end the program's compile.
    except Exception as error:
        _note_problem(passed_on.session, error)
    finally:
        if root in sys.path:
            del sys.path[len(sys.path) - 1 - sys.path[::-1].index(root)]


def _note_problem(session: str, error: Exception) -> None:
    folder = os.path.join(session, PROCESSES)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f".problem-{os.getpid()}"), "x", encoding="utf-8", errors="replace") as file:
            file.write(f"{type(error).__name__}: {error}")
    except OSError:
        pass
