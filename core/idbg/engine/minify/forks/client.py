"""Run scripts in processes of their own, within limits. Imports no torch."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from idbg.config import places
from idbg.config.environment import SCRATCH, importable, sets_up_torch
from idbg.engine.compat.builds.scratch import is_torn, private
from idbg.engine.minify.forks.attempt import Attempt, Limits
from idbg.engine.minify.forks.connection import Message, Server, ServerGone
from idbg.engine.minify.forks.outcome import TryResult
from idbg.schema.errors import WorkerError

DEATHS = 2  # of warm processes, after which each script gets a new Python
# the folders of compilers' caches, below the scratch folder
CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions",
}

# CUDA's error in a process that was forked from one with an initialized driver
_NO_DEVICE = re.compile(r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error")


class Forks:
    """Runs scripts, one at a time, each in a process forked from a warm one, which has torch and the
    package of `backend` imported. Each gets a new Python if `fork` is false, or if the warm process dies twice or
    cannot be forked.

    Scripts run in `cwd`; modules are found beside the script, then in `path`. Their compilers' caches are below
    `scratch`, which the caller removes; with `own_caches` false, the user's are used. Leaving the context ends all
    processes.

    A forked script ends without C's exit handlers, and finds torch imported: a script that sets environment variables
    before it imports torch gets a new Python.
    """

    def __init__(
        self,
        cwd: Path,
        path: Sequence[str],
        scratch: Path,
        fork: bool = True,
        *,
        own_caches: bool = True,
        backend: str = "",
    ) -> None:
        self._cwd, self._path, self._scratch = cwd, list(path), scratch
        self._own_caches, self._backend = own_caches, backend
        self._deaths = 0 if fork else DEATHS
        self._servers: dict[bool, Server] = {}  # by whether they are warm

    def __enter__(self) -> Self:
        """Start the warm process, which imports torch in the background."""
        self._server(self.forks)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def forks(self) -> bool:
        """Whether scripts are forked from a warm process."""
        return self._deaths < DEATHS

    def run(
        self, script: Path, *, seconds: float, memory: int, arguments: Sequence[str] = (), eager: bool = False
    ) -> TryResult:
        """Run the script once, for at most `seconds`, with at most `memory` bytes for it and the processes that it
        starts; with `eager`, torch compiles nothing in it. An interruption ends it. Raises WorkerError if no process
        can be started.
        """
        if self._own_caches:
            places.forget_graphs(self._scratch / CACHES["TORCHINDUCTOR_CACHE_DIR"])
        order: Message = {
            "script": str(script),
            "arguments": [*arguments],
            "path": self._path,
            "cwd": str(self._cwd),
            "eager": eager,
        }
        try:
            result = self._run(order, Limits(seconds, memory), fork=not sets_up_torch(script))
            if self.forks and result.verdict == "other" and _NO_DEVICE.search(result.printed):
                self._deaths = DEATHS
                result = self._run(order, Limits(seconds, memory), fork=False)
        except BaseException:  # mostly KeyboardInterrupt
            self._end()
            raise
        if result.status is None:
            self._tidy()
        return result

    def _run(self, order: Message, limits: Limits, fork: bool) -> TryResult:
        while True:
            server = self._server(self.forks and fork)
            attempt = Attempt(server, limits)
            try:
                server.ready()
                return attempt.run(order)
            except ServerGone as error:
                lost = attempt.lost()
                del self._servers[server.warm]
                server.end()
                self._tidy()
                if server.warm:
                    self._deaths += 1
                elif attempt.pid:
                    return lost
                else:
                    raise WorkerError(
                        f"the process that runs scripts cannot be started: {error}", hint=f"see {self._log}"
                    ) from error

    def _server(self, warm: bool) -> Server:
        if warm not in self._servers:
            self._unfinished.mkdir(parents=True, exist_ok=True)
            environment = importable() | {SCRATCH: str(self._unfinished)}
            caches = {}
            if self._own_caches:
                environment["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # a pool of processes would be forked as well
                caches = {name: str(self._scratch / folder) for name, folder in CACHES.items()}
            self._servers[warm] = Server(
                self._cwd, environment, caches, warm=warm, log=self._log, backend=self._backend
            )
        return self._servers[warm]

    @property
    def _unfinished(self) -> Path:
        return self._scratch / "unfinished"

    @property
    def _log(self) -> Path:
        return self._scratch / "server.log"

    def _tidy(self) -> None:
        """Remove what an interrupted script and its processes left half-built in our folders."""
        for folder in self._unfinished.glob("*"):
            shutil.rmtree(folder, ignore_errors=True)
        if not self._own_caches:
            return
        extensions = self._scratch / CACHES["TORCH_EXTENSIONS_DIR"]
        for file in extensions.rglob("lock"):  # torch waits forever for a stale lock
            file.unlink(missing_ok=True)
        for file in self._scratch.rglob("*"):
            if is_torn(file):
                file.unlink(missing_ok=True)

    def _end(self) -> None:
        while self._servers:
            _, server = self._servers.popitem()
            server.end()


def verified(script: Path, *, seconds: float, memory: int) -> TryResult:
    """Run `python SCRIPT` once in a fresh process and another folder, with the user's environment and caches, in which
    an interrupted compiler leaves no half-written files. Raises WorkerError if no process can be started.
    """
    beside = private.folder if private.folder is not None and private.folder.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="idbg-", dir=beside, ignore_cleanup_errors=True) as folder:
        elsewhere = Path(folder) / "elsewhere"
        elsewhere.mkdir()
        with Forks(elsewhere, (), Path(folder) / "scratch", fork=False, own_caches=False) as forks:
            return forks.run(script.resolve(), seconds=seconds, memory=memory)
