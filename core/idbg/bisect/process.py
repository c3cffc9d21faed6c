"""How is one try made in a process of its own, whatever becomes of it?"""

import selectors
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.config.environment import sets_up_torch
from idbg.schema.guilty import HEARD, Answer, Try
from idbg.schema.repros import Signature
from idbg.worker.child import Child

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.trying")
POLL_SECONDS = 0.2
KEPT = 4_000  # characters of what the process printed, for the reason of its death
_DECODER = msgspec.json.Decoder(Answer)


class Processes:
    """Makes tries, each in a process of its own. The one for the next try is begun beforehand, and imports torch while
    this one compiles.
    """

    def __init__(self) -> None:
        self._spare: tuple[Child, tuple[object, ...]] | None = None  # with what it was begun for

    def __call__(
        self,
        asked: Try,
        cache: Path,
        seconds: float,
        stopped: Callable[[], bool],
        environ: dict[str, str] | None = None,
    ) -> Answer | None:
        """What the try came to: a death or a hang is an answer too; None where it was `stopped`.

        `cache` is all that the process's compilers find. Raises OSError if it cannot be started.
        """
        heard = cache / "inductor" / HEARD
        heard.unlink(missing_ok=True)
        wanted = (_is_warm(asked), cache, tuple((environ or {}).items()))
        child = self._taken(wanted)
        child.write(msgspec.json.encode(asked))
        printed = bytearray()
        try:
            lines = _lines(child, printed, time.monotonic() + seconds, stopped)
            site = child.crash_site()
        finally:
            child.end()
            child.close()
        if stopped():
            return None
        if lines:
            return _DECODER.decode(lines[0])
        told = replace(_applied(heard), compiled=True)
        if lines is None:
            return replace(told, signature=Signature("hung"), words=f"it had not ended after {seconds:.0f} s")
        said = bytes(printed).decode(errors="replace").strip().splitlines()
        cause = child.cause()
        if cause.startswith("killed by "):
            where = f" in {Path(site.file).name}:{site.line}" if site is not None and site.line else ""
            signature = Signature("died", type=cause.removeprefix("killed by "))
            return replace(told, signature=signature, words=f"it was {cause}{where}")
        return Answer(cannot=f"the process {cause}{f': {said[-1]}' if said else ''}")

    def close(self) -> None:
        """End what was begun for a try that does not come."""
        if self._spare is not None:
            child, _ = self._spare
            self._spare = None
            child.signal(signal.SIGKILL)  # it has begun nothing that is to be tidied up
            child.end()
            child.close()

    def _taken(self, wanted: tuple[bool, Path, tuple[tuple[str, str], ...]]) -> Child:
        """A process that waits for its try; another one is begun."""
        if self._spare is not None and self._spare[1] != wanted:
            self.close()
        child = self._spare[0] if self._spare is not None else _begun(*wanted)
        self._spare = (_begun(*wanted), wanted) if wanted[0] else None
        return child


def _begun(is_warm: bool, cache: Path, environ: tuple[tuple[str, str], ...]) -> Child:
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    command = (*COMMAND, str(cache / "inductor"), "warm" if is_warm else "cold")
    return Child(command, {**dict(environ), **caches}, doomed=cache)


def _is_warm(asked: Try) -> bool:
    """Whether torch can be imported before the try is known: not where the program first sets what torch reads."""
    program = asked.program
    if asked.command or program.module or not program.path:
        return bool(asked.command) and bool(asked.parts or asked.level.backend)
    return not sets_up_torch(Path(program.cwd, program.path))


def _applied(file: Path) -> Answer:
    """What a process that gave no answer had applied, as far as it is known."""
    try:
        return _DECODER.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError):  # it had not come so far, or was killed as it wrote
        return Answer()


def _lines(child: Child, printed: bytearray, deadline: float, stopped: Callable[[], bool]) -> list[bytes] | None:
    """What the child answered before it ended; None where it had not ended at the deadline, or was stopped."""

    def keep(chunk: bytes) -> None:
        printed[:] = (printed + chunk)[-KEPT:]

    lines: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        for fd in (child.stdout, child.stderr):
            selector.register(fd, selectors.EVENT_READ, partial(child.drain, fd, keep))
        while not lines and not child.exited():  # one that has answered may hang at its exit
            if time.monotonic() > deadline or stopped():
                return None
            began = time.monotonic()
            for key, _ in selector.select(POLL_SECONDS):
                key.data()
            if time.monotonic() - began < POLL_SECONDS / 10:  # a pipe that the program closed is ready for ever
                time.sleep(POLL_SECONDS / 10)
            lines += child.lines() or []
    return lines + child.remaining_lines()
