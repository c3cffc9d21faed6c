"""Make one try in a process of its own; a crash or a hang is an answer too."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.config import places
from idbg.config.environment import sets_up_torch
from idbg.schema.bisection import PROGRESS_FILE, Answer, Try
from idbg.schema.repros import Signature
from idbg.worker.child import Child
from idbg.worker.one_answer import answered, caches_in

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.bisect_try")
_DECODER = msgspec.json.Decoder(Answer)
_Wanted = tuple[bool, Path, dict[str, str]]  # warm or cold, its cache, its environment


class Processes:
    """Makes tries, each in a process of its own. The one for the next try is begun beforehand, and imports torch while
    this one compiles.
    """

    def __init__(self) -> None:
        self._spare: tuple[Child, _Wanted] | None = None  # with what it was begun for

    def __call__(self, attempt: Try, cache: Path, seconds: float, stopped: Callable[[], bool]) -> Answer | None:
        """The answer of the try, which may be a crash or a hang; None if it was `stopped`.

        `cache` is all that the process's compilers find. Raises OSError if it cannot be started.
        """
        applied = cache / "inductor" / PROGRESS_FILE
        applied.unlink(missing_ok=True)
        places.forget_graphs(applied.parent)
        child = self._taken((_is_warm(attempt), cache, attempt.environ))
        child.write(msgspec.json.encode(attempt))
        done = answered(child, seconds, stopped, _DECODER.decode)
        if stopped():
            return None
        if done.answer is not None:
            return done.answer
        answer = replace(_applied(applied), compiled=True)
        if not done.in_time:
            return replace(answer, signature=Signature("hung"), words=f"it had not ended after {seconds:.0f} s")
        if done.cause.startswith("killed by "):
            site = done.crash
            where = f" in {Path(site.file).name}:{site.line}" if site is not None and site.line else ""
            signature = Signature("died", type=done.cause.removeprefix("killed by "))
            return replace(answer, signature=signature, words=f"it was {done.cause}{where}")
        return Answer(cannot=done.words)

    def close(self) -> None:
        """End what was begun for a try that does not come."""
        if self._spare is not None:
            child, _ = self._spare
            self._spare = None
            child.signal(signal.SIGKILL)  # it has begun nothing that is to be tidied up
            child.end()
            child.close()

    def _taken(self, wanted: _Wanted) -> Child:
        """A process that waits for its try; another one is begun."""
        if self._spare is not None and self._spare[1] != wanted:
            self.close()
        child = self._spare[0] if self._spare is not None else _begun(*wanted)
        self._spare = (_begun(*wanted), wanted) if wanted[0] else None
        return child


def _begun(is_warm: bool, cache: Path, environ: dict[str, str]) -> Child:
    command = (*COMMAND, str(cache / "inductor"), "warm" if is_warm else "cold")
    return Child(command, {**environ, **caches_in(cache)}, doomed=cache)


def _is_warm(attempt: Try) -> bool:
    """Whether torch can be imported before the try is known: not where the program first sets what torch reads."""
    program = attempt.program
    if attempt.command or program.module or not program.path:
        return bool(attempt.command) and bool(attempt.parts or attempt.level.backend)
    return not sets_up_torch(Path(program.cwd, program.path))


def _applied(file: Path) -> Answer:
    """The applications of a process that gave no answer, as far as they are known."""
    try:
        return _DECODER.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError):  # it had not come so far, or was killed as it wrote
        return Answer()
