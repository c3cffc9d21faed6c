"""The events of benchmarks."""

import msgspec

from idbg.schema.bench import Row, Task
from idbg.schema.event import Event
from idbg.schema.kernel_times import KernelTimes
from idbg.schema.programs import Failure


class BenchStarted(Event, frozen=True, kw_only=True, tag="bench_started"):
    """So many rows will be measured, in processes of their own."""

    cases: int = msgspec.field(name="subjects")


class BenchTaskStarted(Event, frozen=True, kw_only=True, tag="bench_task_started"):
    """One of the processes that a row takes has begun; `backend` is written NAME or NAME:MODE."""

    program: str
    backend: str
    task: Task


class BenchStepStarted(Event, frozen=True, kw_only=True, tag="bench_step_started"):
    """Step `step` of `of` of the task that is measured has begun."""

    step: int
    of: int
    words: str


class RowMeasured(Event, frozen=True, kw_only=True, tag="row_measured"):
    """A row is measured, and kept where the database took it."""

    row: Row


class KernelsTimed(Event, frozen=True, kw_only=True, tag="kernels_timed"):
    """How long each kernel of the program takes on a backend; or why that is not known."""

    program: str
    backend: str
    times: KernelTimes | None = None
    failure: Failure | None = None


class BenchEnded(Event, frozen=True, kw_only=True, tag="bench_ended"):
    """Nothing is measured any more; a failure says that it was cancelled, or which row the database did not take."""

    failure: Failure | None = None
