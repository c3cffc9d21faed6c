"""The steps of a measuring process, and which one it is at."""

from typing import Protocol

import msgspec

from idbg.schema.bench import Task

IMPORT, LOAD, COMPILE, WARM_UP = "importing torch", "loading the program", "compiling", "warming up"
CALLS, MEMORY = "timing calls", "measuring memory"
KERNELS, PEAKS = "timing kernels", "the machine's peaks"
COMPARE = "compiling, and comparing with eager"

PLANS: dict[Task, tuple[str, ...]] = {
    "cold": (IMPORT, LOAD, COMPILE),
    "warm": (IMPORT, LOAD, COMPILE, WARM_UP, CALLS, MEMORY),
    "check": (IMPORT, LOAD, COMPARE),
    "kernels": (IMPORT, LOAD, COMPILE, WARM_UP, KERNELS, PEAKS),
}
"""Each begins when the one before it is done."""


class ReportStep(Protocol):
    """Says that a step of the plan begins: its name, and `words` where more is known than that."""

    def __call__(self, name: str, words: str = "", /) -> None: ...


class BenchStep(msgspec.Struct, frozen=True, tag_field="type", tag="step"):
    """Step `number` of the `of` in a task's plan has begun; `words` tell it."""

    number: int
    of: int
    words: str

    @classmethod
    def at(cls, task: Task, name: str, words: str = "") -> "BenchStep":
        """The step of this name in the task's plan. Raises ValueError where the plan has none."""
        plan = PLANS[task]
        return cls(plan.index(name) + 1, len(plan), words or name)


def ignore_step(name: str, words: str = "") -> None:
    """A ReportStep for where nobody listens."""
