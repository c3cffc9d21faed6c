"""Capture this Python process as one of a session, from the first thing that it compiles.

Python imports this module at its start, as its folder stands first on PYTHONPATH. The Python may be any other than the
one that idbg is installed in, so nothing but the standard library is imported here. A process that compiles nothing
pays for a few patched functions of `os`.

The program sees its own environment and sys.path: what leads here is passed on to the processes that it starts below
Python's `os.environ`, and removed from theirs again. Where idbg cannot be imported, torch writes its trace instead.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all of this
    import logging
    from collections.abc import Callable, Mapping, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


VARIABLE = "IDBG_PROCESSES"
"""Names the session's folder, after the rank of the process that set it: "RANK=3|/path/to/session"."""
PATH, TRACE = "PYTHONPATH", "TORCH_TRACE"
FOLDER = os.path.dirname(os.path.abspath(__file__))
PROCESSES = "processes"
"""The folder of a session's processes."""
PIDS = ".pids"
"""In the session's folder of processes: a file HOST-PID for each that has a log, with its name and how it ended."""
TRACES = ".traces"
"""Beside it: the traces of processes that cannot import idbg, or whose Python does not import this module (-I)."""
RANKS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
"""The variables of torchrun, Open MPI, MPICH and Slurm: of the rank, of that on its host, of the number of ranks."""
OLDEST_PYTHON, OLDEST_TORCH = (3, 11), (2, 11)  # with which idbg runs
TRACED = "process-"
"""What the name of a process begins with whose log is read from its trace."""
_ENV = 5  # the place of the environment among the arguments of fork_exec
_NOT_CAPTURED = (
    "torch/_inductor/compile_worker",
    "idbg.worker",
)  # on the command lines of helpers, which compile parts


class Inheritance:
    """What this process passes on to those that it starts: that they are captured into the session's folder.

    `parent_rank` is what `own_rank` was in the process that started this one. `forked` is called in a fork of this
    process, before anything else.
    """

    def __init__(self, session: str, parent_rank: str = "", forked: Callable[[], None] | None = None) -> None:
        self.session, self.parent_rank, self.forked = session, parent_rank, forked
        self.waiting: logging.Handler | None = None  # for the first record of torch's trace
        self._path = os.environ.get(PATH)
        self._undo: list[tuple[object, str, object]] = []

    def begin(self) -> None:
        """Pass it on, until `end`."""
        for name, value in self._variables(self._path or "", os.environ.get(TRACE, "")).items():
            os.putenv(name, value)
        self._replace_starts()
        for name in ("waitpid", "wait", "wait3", "wait4"):
            self._replace(os, name, self._reporting(getattr(os, name)))
        # where Popen finds waitpid as Python exits
        held = getattr(sys.modules.get("subprocess"), "_del_safe", None)
        if hasattr(held, "waitpid"):
            self._replace(held, "waitpid", os.waitpid)

    def end(self) -> None:
        """Let this process start others as without idbg."""
        while self._undo:
            owner, name, function = self._undo.pop()
            setattr(owner, name, function)
        for name in (PATH, TRACE, VARIABLE):
            value = os.environ.get(name)
            os.unsetenv(name) if value is None else os.putenv(name, value)

    def _variables(self, path: str, trace: str) -> dict[str, str]:
        """The variables of a process that has these of its own."""
        own = f"{own_rank()}|{self.session}"
        return {PATH: _with_folder(path), VARIABLE: own, TRACE: trace or traces(self.session)}

    def _replace(self, owner: object, name: str, function: object) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, function)

    # ------------------------------------------------------------- starting processes

    def _replace_starts(self) -> None:
        """An environment that the program itself passes to a process leads here too."""
        try:
            import _posixsubprocess as starts
        except ImportError:  # Windows
            return
        fork_exec = starts.fork_exec

        def fork_exec_passing(args: Sequence[Any], *others: Any) -> int:
            env = self._listed(args, others[_ENV - 1])
            started: int = fork_exec(args, *others[: _ENV - 1], env, *others[_ENV:])  # type: ignore[call-arg]
            return started

        self._replace(starts, "fork_exec", fork_exec_passing)
        subprocess = sys.modules.get("subprocess")
        if hasattr(subprocess, "_fork_exec"):
            self._replace(subprocess, "_fork_exec", fork_exec_passing)
        for name in ("posix_spawn", "posix_spawnp", "execve"):
            if hasattr(os, name):
                self._replace(os, name, self._passing(getattr(os, name)))

    def _passing(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def start_passing(path: Any, args: Sequence[Any], env: Mapping[Any, Any], **kwargs: Any) -> Any:
            return start(path, args, self._mapped(args, env), **kwargs)

        return start_passing

    def _mapped(self, args: Sequence[Any], env: Mapping[Any, Any]) -> Mapping[Any, Any]:
        if not _is_captured(args):
            return env
        own = {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
        return {**own, **self._variables(own.get(PATH, ""), own.get(TRACE, ""))}

    def _listed(self, args: Sequence[Any], env: Sequence[bytes] | None) -> Sequence[bytes] | None:
        """The environment for fork_exec: a list of b"NAME=value", or None for this process's."""
        if env is None:
            if _is_captured(args) and os.environ.get(PATH) == self._path:
                return None
            env = [name + b"=" + value for name, value in os.environb.items()]
        if not _is_captured(args):
            return env
        own = dict(each.partition(b"=")[::2] for each in env)
        path, trace = (os.fsdecode(own.get(os.fsencode(name), b"")) for name in (PATH, TRACE))
        own.update((os.fsencode(name), os.fsencode(value)) for name, value in self._variables(path, trace).items())
        return [name + b"=" + value for name, value in own.items()]

    # ------------------------------------------------------------- how processes end

    def _reporting(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `os` that waits for children, which notes how a captured one ended."""

        def wait_reporting(*args: Any) -> Any:
            result = wait(*args)
            try:
                if result[0] > 0:
                    self._ended(result[0], result[1])
            except OSError:  # it was not captured, or the session's folder is gone
                pass
            return result

        wait_reporting.__name__ = wait_reporting.__qualname__ = wait.__name__
        wait_reporting.__doc__ = wait.__doc__
        return wait_reporting

    def _ended(self, pid: int, status: int) -> None:
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
            if os.path.isdir(traces(self.session)):  # perhaps of a process whose trace is not read yet
                os.makedirs(os.path.join(self.session, PROCESSES, PIDS), exist_ok=True)
                flags |= os.O_CREAT
            file = os.open(pid_file(self.session, pid), flags, 0o644)
            try:
                os.write(file, f"\n{status}".encode())
            finally:
                os.close(file)


def pid_file(session: str, pid: int, host: str = "") -> str:
    """The file that has the name of a captured process of a host (""; this one), and below it how it ended."""
    host = "".join(each if each.isalnum() or each in ".-" else "_" for each in host or os.uname().nodename)
    return os.path.join(session, PROCESSES, PIDS, f"{host}-{pid}")


def captured(session: str) -> set[str]:
    """The processes of the session that capture themselves, by their names, and the traces of others."""
    found = set()
    pids = os.path.join(session, PROCESSES, PIDS)
    for each in os.listdir(pids) if os.path.isdir(pids) else ():
        with open(os.path.join(pids, each), encoding="utf-8", errors="replace") as file:
            name = file.readline().strip()
        if name and not name.startswith(TRACED):
            found.add(name)
    folder = traces(session)
    return found | set(os.listdir(folder) if os.path.isdir(folder) else ())


def traces(session: str) -> str:
    """The folder into which torch writes the traces of processes that do not capture themselves."""
    return os.path.join(session, PROCESSES, TRACES)


def environment(session: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a job's launcher is started, whose processes are captured into the session's folder. A
    rank that is set already, as in a pod or a batch step, is not the launcher's, which sets those of its ranks.
    """
    own = {PATH: _with_folder(environ.get(PATH, "")), TRACE: environ.get(TRACE) or traces(session)}
    outer = {name: value for name, value in environ.items() if name not in {rank for rank, _, _ in RANKS}}
    return {**outer, **own, VARIABLE: f"|{session}"}


def _with_folder(path: str) -> str:
    return os.pathsep.join([FOLDER, *_without_folder(path)])


def _without_folder(path: str) -> list[str]:
    return [each for each in path.split(os.pathsep) if each and each != FOLDER]


def _is_captured(args: Sequence[Any]) -> bool:
    try:
        words = [os.fsdecode(each) for each in args]
    except TypeError:  # the real function says what is wrong with them
        return False
    return not any(part in word for word in words for part in _NOT_CAPTURED)


# ------------------------------------------------------------- this process

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


def _start() -> None:
    """Python starts: hide what leads here, and wait for torch."""
    rank, _, session = os.environ.pop(VARIABLE, "").partition("|")
    if PATH in os.environ:
        os.environ[PATH] = os.pathsep.join(_without_folder(os.environ[PATH]))
        if not os.environ[PATH]:
            del os.environ[PATH]
    if os.environ.get(TRACE) == traces(session):
        del os.environ[TRACE]
    sys.path[:] = [each for each in sys.path if each != FOLDER]
    if session and os.path.isdir(session):
        pass_on(session, rank)
        sys.meta_path.insert(0, _TorchAwaited())


def _import_own_sitecustomize() -> None:
    """Import the one that Python imports without idbg. Raises ImportError where there is none, as Python expects."""
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")


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


def own_rank() -> str:
    """The rank of this process as a launcher set it, also where it started this one's parent: "RANK=3"; "" where none
    did.
    """
    return next((f"{rank}={os.environ[rank]}" for rank, _, _ in RANKS if os.environ.get(rank, "").isdecimal()), "")


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


if __name__ == "sitecustomize":
    _start()
    _import_own_sitecustomize()
