"""How is one task of a row done in a process of its own, whatever becomes of it?"""

import selectors
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from idbg.schema.bench import BenchCase, Failed, Task, TaskResult
from idbg.schema.bench_steps import BenchStep
from idbg.schema.programs import Failure
from idbg.worker.child import Child

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.bench")
KEPT = 4_000  # characters of what the process printed, for the reason of a failure
POLL_SECONDS = 0.2
_DECODER: msgspec.json.Decoder[TaskResult | BenchStep] = msgspec.json.Decoder(TaskResult | BenchStep)


def measured(
    case: BenchCase,
    task: Task,
    cache: Path,
    seconds: float,
    stopped: Callable[[], bool] = lambda: False,
    stepped: Callable[[BenchStep], None] = lambda _: None,
) -> TaskResult:
    """The task's answer, from a fresh process with nothing but `cache` cached. `stopped` ends it; `stepped` hears of
    each step as it begins."""
    child = Child((*COMMAND, task, msgspec.json.encode(case).decode()), _environment(cache), doomed=cache)
    printed = bytearray()
    try:
        answers = _answers(child, printed, time.monotonic() + seconds, stopped, stepped)
    finally:
        child.end()
        child.close()
    if stopped():
        return Failed(Failure(kind="cancelled", message="cancelled"))
    if answers is None:
        return _failed(f"{task}: it took longer than {seconds:g} s, and was stopped", "give it more (--timeout)")
    if not answers:
        said = bytes(printed).decode(errors="replace").strip().splitlines()
        return _failed(
            f"{task}: the process {child.cause()}{f': {said[-1]}' if said else ''}", "run it alone: idbg run"
        )
    return answers[0]


def _answers(
    child: Child,
    printed: bytearray,
    deadline: float,
    stopped: Callable[[], bool],
    stepped: Callable[[BenchStep], None],
) -> list[TaskResult] | None:
    """What the child answered before it ended; None where it had not ended at the deadline (of time.monotonic)."""

    def keep(chunk: bytes) -> None:
        printed[:] = (printed + chunk)[-KEPT:]

    def answered(lines: list[bytes]) -> list[TaskResult]:
        results: list[TaskResult] = []
        for line in lines:
            if isinstance(told := _DECODER.decode(line), BenchStep):
                stepped(told)
            else:
                results.append(told)
        return results

    answers: list[TaskResult] = []
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
            answers += answered(child.lines() or [])
    return answers + answered(child.remaining_lines())


def _environment(cache: Path) -> Mapping[str, str]:
    """The variables that make `cache` all that the child's compilers find."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"), "TRITON_CACHE_DIR": str(cache / "triton")}


def _failed(message: str, hint: str) -> Failed:
    return Failed(Failure(kind="worker", message=message, hint=hint))
