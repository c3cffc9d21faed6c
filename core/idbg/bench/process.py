"""How is one task of a row done in a process of its own, whatever becomes of it?"""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from idbg.schema.bench import BenchCase, Failed, Task, TaskResult
from idbg.schema.bench_steps import BenchStep
from idbg.schema.programs import Failure
from idbg.worker.child import Child
from idbg.worker.one_answer import Answered, answered, caches_in

COMMAND = (sys.executable, "-P", "-m", "idbg.worker.bench")
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

    def heard(line: bytes) -> TaskResult | None:
        if isinstance(told := _DECODER.decode(line), BenchStep):
            stepped(told)
            return None
        return told

    child = Child((*COMMAND, task, msgspec.json.encode(case).decode()), caches_in(cache), doomed=cache)
    done: Answered[TaskResult] = answered(child, seconds, stopped, heard)
    if stopped():
        return Failed(Failure(kind="cancelled", message="cancelled"))
    if not done.in_time:
        return _failed(f"{task}: it took longer than {seconds:g} s, and was stopped", "give it more (--timeout)")
    if done.answer is None:
        return _failed(f"{task}: {done.words}", "run it alone: idbg run")
    return done.answer


def _failed(message: str, hint: str) -> Failed:
    return Failed(Failure(kind="worker", message=message, hint=hint))
