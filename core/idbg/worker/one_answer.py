"""What comes of a process that has one answer to give, whatever becomes of it?"""

import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from idbg.schema.faults import CrashSite
from idbg.worker.child import Child

KEPT = 4_000  # characters of what the process printed, for the reason of a failure
POLL_SECONDS = 0.2

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Answered(Generic[Answer]):
    """`answer` is None where there is none: `cause` says how it ended, `said` what it printed last, `crash` where it
    was as a signal killed it. `in_time` is False where it was ended at its deadline, or was stopped.
    """

    answer: Answer | None
    in_time: bool
    cause: str
    said: str
    crash: CrashSite | None

    @property
    def words(self) -> str:
        """How it ended without an answer."""
        return f"the process {self.cause}{f': {self.said}' if self.said else ''}"


def answered(
    child: Child, seconds: float, stopped: Callable[[], bool], heard: Callable[[bytes], Answer | None]
) -> Answered[Answer]:
    """Listen to the child until it answers or ends, and end it. `heard` is given each of its lines, and gives the
    answer where it is one.
    """
    printed = bytearray()
    try:
        answers = _answers(child, printed, time.monotonic() + seconds, stopped, heard)
        crash = child.crash_site()
    finally:
        child.end()
        child.close()
    said = bytes(printed).decode(errors="replace").strip().splitlines()
    return Answered(
        next(iter(answers or ()), None), answers is not None, child.cause(), said[-1] if said else "", crash
    )


def caches_in(folder: Path) -> dict[str, str]:
    """The variables that make `folder` all that a child's compilers find."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}


def _answers(
    child: Child,
    printed: bytearray,
    deadline: float,
    stopped: Callable[[], bool],
    heard: Callable[[bytes], Answer | None],
) -> list[Answer] | None:
    """None where it had not ended at the deadline (of time.monotonic), or was stopped."""

    def keep(chunk: bytes) -> None:
        printed[:] = (printed + chunk)[-KEPT:]

    def told(lines: list[bytes]) -> list[Answer]:
        return [answer for answer in map(heard, lines) if answer is not None]

    answers: list[Answer] = []
    with selectors.DefaultSelector() as selector:
        for fd in (child.stdout, child.stderr):
            selector.register(fd, selectors.EVENT_READ, partial(child.drain, fd, keep))
        while not answers and not child.exited():  # one that has answered may hang at its exit
            if time.monotonic() > deadline or stopped():
                return None
            began = time.monotonic()
            for key, _ in selector.select(POLL_SECONDS):
                key.data()
            if time.monotonic() - began < POLL_SECONDS / 10:  # a pipe that the program closed is ready for ever
                time.sleep(POLL_SECONDS / 10)
            answers += told(child.lines() or [])
    return answers + told(child.remaining_lines())
