"""Get the one answer of a process, or how it ended without one."""

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
    """The `answer`, or None: then `cause` says how the process ended, `last_line` is the end of its output, and `crash`
    where a signal killed it. `in_time` is False if it was ended at its deadline, or stopped.
    """

    answer: Answer | None
    in_time: bool
    cause: str
    last_line: str
    crash: CrashSite | None

    @property
    def words(self) -> str:
        """A description of the end without an answer."""
        return f"the process {self.cause}{f': {self.last_line}' if self.last_line else ''}"


def answered(
    child: Child, seconds: float, stopped: Callable[[], bool], parse: Callable[[bytes], Answer | None]
) -> Answered[Answer]:
    """Read from the child until it answers or ends, and end it. `parse` gets each of its lines, and returns the answer
    if the line is one.
    """
    printed = bytearray()
    try:
        answers = _answers(child, printed, time.monotonic() + seconds, stopped, parse)
        crash = child.crash_site()
    finally:
        child.end()
        child.close()
    lines = bytes(printed).decode(errors="replace").strip().splitlines()
    return Answered(
        next(iter(answers or ()), None), answers is not None, child.cause(), lines[-1] if lines else "", crash
    )


def caches_in(folder: Path) -> dict[str, str]:
    """The variables that make `folder` all that a child's compilers find."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}


def _answers(
    child: Child,
    printed: bytearray,
    deadline: float,
    stopped: Callable[[], bool],
    parse: Callable[[bytes], Answer | None],
) -> list[Answer] | None:
    """None where it had not ended at the deadline (of time.monotonic), or was stopped."""

    def keep(chunk: bytes) -> None:
        printed[:] = (printed + chunk)[-KEPT:]

    def parsed(lines: list[bytes]) -> list[Answer]:
        return [answer for answer in map(parse, lines) if answer is not None]

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
            answers += parsed(child.lines() or [])
    return answers + parsed(child.remaining_lines())
