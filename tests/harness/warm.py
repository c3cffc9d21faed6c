"""Processes that a test starts, forked from one that has imported torch already (warm_server.py).

For tests that are about what a process does and not about how it starts. `WarmPopen` is `subprocess.Popen`, for
commands that begin with this Python; all others, and those whose environment says what Python or torch read as they
are imported, start as ever.
"""

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from select import select
from subprocess import Popen  # as it is before a test puts ours in its place
from typing import Any

SERVER = Path(__file__).with_name("warm_server.py")
# Read when Python starts or torch is imported; and of these, what is read again each time
AT_START = ("TORCH", "OMP_", "PYTHON", "CXX", "CUDA_VISIBLE", "TMPDIR", "TRITON", "LD_", "MKL", "PATH")
AGAIN = {
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TRITON_CACHE_DIR",
}
LOADS = "cdll.LoadLibrary("  # torch tries a library, and holds the lock that a server needs as it starts
ON_GPU = os.path.exists("/dev/nvidiactl")  # CUDA takes no fork once something has asked for it
COLD = {"TORCH_COLD": "1"}  # in the environment: that process starts as ever
CHILDREN = "WARM_CHILDREN"  # in the environment: what that process starts is warm as well, as is the worker of `idbg`


def of_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(AT_START) and name not in AGAIN}


@dataclass
class Server:
    """Where the server is asked, and what Python and torch read in its environment. The processes of pytest-xdist
    share one, that ends with the process that started them; else it ends with this one.
    """

    environ: Mapping[str, str]
    path: str = ""

    def address(self) -> str:
        """The path of its socket. The first who asks waits until torch is imported, some seconds."""
        if not self.path:
            run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
            folder = os.path.join(tempfile.gettempdir(), f"warm-{run}") if run else tempfile.mkdtemp(prefix="warm-")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self.path = os.path.join(folder, "socket")
            with open(os.path.join(folder, "lock"), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not os.path.exists(self.path):
                    self._start(os.getppid() if run else os.getpid())
        return self.path

    def _start(self, owner: int) -> None:
        command = [sys.executable, str(SERVER), self.path, str(owner)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
        process = Popen(command, **pipes, env=self.environ, start_new_session=True)  # type: ignore[call-overload]
        assert process.stdout.readline() == b"ready\n"
        process.stdout.close()

    def can_be(self, args: object, environ: Mapping[str, str]) -> bool:
        """Whether it is this Python, asked for a module, a text or a file, and would start as the server did."""
        if isinstance(args, str) or not isinstance(args, Sequence) or list(args[:1]) != [sys.executable] or ON_GPU:
            return False
        words = [str(word) for word in args[1:]]
        first = words[words[:1] == ["-P"] :][:1]
        return (
            bool(first)
            and (first[0] in ("-m", "-c") or first[0][0] != "-")
            and LOADS not in words[-1]
            and of_start(environ) == of_start(self.environ)
        )


server = Server(dict(os.environ))


class WarmPopen(Popen):  # type: ignore[type-arg]
    """A process that was forked by the server, where it can be; else `subprocess.Popen`."""

    _told: socket.socket | None = None

    def _execute_child(self, args: Any, *given: Any) -> None:
        _, before, _, pass_fds, cwd, env, _, _, shell, *rest = given
        environ = dict(os.environ if env is None else env)
        if shell or before or not server.can_be(args, environ):
            super()._execute_child(args, *given)  # type: ignore[misc]
            return
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, _, _, _, _, _, new_session, _ = rest
        standard = {0: p2cread, 1: c2pwrite, 2: errwrite}
        files = {number: number if file == -1 else file for number, file in standard.items()}
        files |= {number: number for number in pass_fds}
        request = {
            "argv": [str(word) for word in args[1:]],
            "env": environ,
            "cwd": os.fspath(cwd or os.getcwd()),
            "files": list(files),
            "session": bool(new_session),
            "server": server.address() if CHILDREN in environ or list(args[1:3]) == ["-m", "idbg"] else "",
        }
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._told.connect(server.address())
        socket.send_fds(self._told, [json.dumps(request).encode()], list(files.values()))
        self.pid = int(self._told.recv(64))
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._told is None:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        if wait_flags & os.WNOHANG and not select([self._told], [], [], 0)[0]:
            return 0, 0
        said = self._told.recv(64)
        self._told.close()
        return self.pid, int(said or 9)  # a keeper that was killed took its child along

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._told is None:
            return super()._internal_poll(*given, **named)  # type: ignore[misc, no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode
