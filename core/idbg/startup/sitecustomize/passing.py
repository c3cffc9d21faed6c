"""What a process passes on to those that it starts, so that they are captured into the folder of a session.

It knows where in that folder they note what is known of them. The standard library alone: any Python imports it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all of this
    import logging
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


VARIABLE = "IDBG_PROCESSES"
"""Names the session's folder, after the rank of the process that set it: "RANK=3|/path/to/session"."""
PATH, TRACE = "PYTHONPATH", "TORCH_TRACE"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Stands on PYTHONPATH of a process that is captured."""
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
                    note_end(self.session, result[0], result[1])
            except OSError:  # it was not captured, or the session's folder is gone
                pass
            return result

        wait_reporting.__name__ = wait_reporting.__qualname__ = wait.__name__
        wait_reporting.__doc__ = wait.__doc__
        return wait_reporting


def pid_file(session: str, pid: int, host: str = "") -> str:
    """The file that has the name of a captured process of a host (""; this one), and below it how it ended."""
    host = "".join(each if each.isalnum() or each in ".-" else "_" for each in host or os.uname().nodename)
    return os.path.join(session, PROCESSES, PIDS, f"{host}-{pid}")


def note_end(session: str, pid: int, status: int) -> None:
    """Note the status of a process, as os.waitpid has it. Raises OSError where it was not captured."""
    if os.WIFEXITED(status) or os.WIFSIGNALED(status):
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        if os.path.isdir(traces(session)):  # perhaps of a process whose trace is not read yet
            os.makedirs(os.path.join(session, PROCESSES, PIDS), exist_ok=True)
            flags |= os.O_CREAT
        file = os.open(pid_file(session, pid), flags, 0o644)
        try:
            os.write(file, f"\n{status}".encode())
        finally:
            os.close(file)


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
    return os.pathsep.join([FOLDER, *without_folder(path)])


def without_folder(path: str) -> list[str]:
    """The folders of a PYTHONPATH without ours."""
    return [each for each in path.split(os.pathsep) if each and each != FOLDER]


def _is_captured(args: Sequence[Any]) -> bool:
    try:
        words = [os.fsdecode(each) for each in args]
    except TypeError:  # the real function says what is wrong with them
        return False
    return not any(part in word for word in words for part in _NOT_CAPTURED)


def own_rank() -> str:
    """The rank of this process as a launcher set it, also where it started this one's parent: "RANK=3"; "" where none
    did.
    """
    return next((f"{rank}={os.environ[rank]}" for rank, _, _ in RANKS if os.environ.get(rank, "").isdecimal()), "")
