"""How is one try made in a process of its own, whatever becomes of it?"""

import selectors
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from idbg.schema.guilty import HEARD, Answer, Try
from idbg.schema.repros import Signature
from idbg.worker.child import Child

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.trying")
POLL_SECONDS = 0.2
KEPT = 4_000  # characters of what the process printed, for the reason of its death
_DECODER = msgspec.json.Decoder(Answer)


def answered(
    asked: Try,
    cache: Path,
    seconds: float,
    stopped: Callable[[], bool],
    environ: dict[str, str] | None = None,
) -> Answer | None:
    """What the try came to: a death or a hang is an answer too; None where it was `stopped`.

    `cache` is all that the process's compilers find. Raises OSError if it cannot be started.
    """
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}
    command = (*COMMAND, msgspec.json.encode(asked).decode(), str(cache / "inductor"))
    heard = cache / "inductor" / HEARD
    heard.unlink(missing_ok=True)
    child = Child(command, {**(environ or {}), **caches}, doomed=cache)
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
