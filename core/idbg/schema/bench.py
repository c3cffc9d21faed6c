"""Records of benchmarks: their cases, steps and measurements. A figure that was not measured is None."""

import os
from collections.abc import Sequence
from statistics import fmean, median, quantiles, stdev
from typing import Literal, Protocol

import msgspec

from idbg.schema.diff import DiffReport, Outcome
from idbg.schema.html_repr import html_of
from idbg.schema.kernel_times import CallKind, KernelTimes
from idbg.schema.programs import Failure, OptionValue, Program, Target
from idbg.schema.strict_json import like

RUNS = 100
SECONDS = 600.0
"""For each of a row's processes."""

EAGER = "eager"
SIGNIFICANT = 0.001  # a p below this tells of a change
LEAST_CHANGE = 0.05  # the medians of two processes of one program were seen to differ by it on an idle machine
Direction = Literal["faster", "slower", "same"]
Status = Literal["ok", "failed"]
RowKey = tuple[str, str, str, str, int | None, str]
"""File, backend, device, dtype, batch, and what torch was set to (`set_to`)."""
Task = Literal["cold", "warm", "check", "kernels", "conform"]


class BenchBackend(msgspec.Struct, frozen=True):
    """A backend by name, with torch.compile's `mode`: written NAME or NAME:MODE."""

    name: str
    mode: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.mode}" if self.mode else self.name


class BenchCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row's question. `dtype` and `batch` change the program's own; `threads` 0 leaves torch's number.

    `rules` (TOML) are those that the check counts violations of.
    """

    program: Program
    backend: BenchBackend
    device: str = ""
    dtype: str = ""
    batch: int | None = None
    runs: int = RUNS
    threads: int = 0
    rules: str = ""
    options: dict[str, OptionValue] = {}
    options_for: str = "inductor"
    dynamic: bool | None = None
    stance: str = ""
    settings: dict[str, OptionValue] = {}
    dynamic_sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, program: Program, target: Target, backend: BenchBackend | None = None, runs: int = RUNS) -> "BenchCase":
        """The program as it is compiled for the target, or on another backend under its conditions."""
        return like(
            cls,
            target,
            program=program,
            backend=backend or BenchBackend(target.backend, "" if target.mode == "default" else target.mode),
            runs=runs,
        )


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds a call. Each of the samples is the mean of `block` calls in a row; `warmup` calls went before.

    `settled`: the warm-up ended because the times stood still, not because its time was up.
    """

    median: float
    p95: float
    mean: float
    std: float
    samples: tuple[float, ...]
    block: int = 1
    warmup: int = 0
    settled: bool = True

    @classmethod
    def of(cls, samples: Sequence[float], block: int, warmup: int, settled: bool) -> "Latency":
        """The figures of these samples, in milliseconds a call; there is one at least."""
        spread = quantiles(samples, n=20, method="inclusive")[-1] if len(samples) > 1 else samples[0]
        std = stdev(samples) if len(samples) > 1 else 0.0
        return cls(median(samples), spread, fmean(samples), std, tuple(samples), block, warmup, settled)

    @property
    def noise(self) -> float:
        """How wide the middle half of the samples is, over their median; 0 of fewer than four samples."""
        if len(self.samples) < 4 or not self.median:
            return 0.0
        low, _, high = quantiles(self.samples, n=4, method="inclusive")
        return (high - low) / self.median


class Machine(msgspec.Struct, frozen=True):
    """Where and with what it was measured. `others` is the part of the processors that other processes used by then."""

    host: str = ""
    device: str = ""
    threads: int = 0
    processors: int = 0
    others: float | None = None
    torch: str = ""
    python: str = ""
    idbg: str = ""
    commit: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="measured"):
    """What a cold or a warm process measured. `compile_s`: to the first result, None in eager."""

    compile_s: float | None = None
    latency: Latency | None = None
    forward: Latency | None = None  # of a program that trains: the forward alone
    kind: CallKind = "forward"
    items: int | None = None  # of a batch
    size: str = ""  # weights and inputs, in words
    peak_bytes: int | None = None
    resolution_ms: float = 0.0
    machine: Machine = Machine()


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="checked"):
    """What the check counted, and its KernelDiff's verdict with what it says of it."""

    graphs: int
    breaks: int
    violations: int | None  # None where the backend checks no rules
    diff: Outcome
    diff_note: str = ""


class Timed(msgspec.Struct, frozen=True, tag_field="type", tag="timed"):
    """How long each kernel of the program takes."""

    times: KernelTimes


class Failed(msgspec.Struct, frozen=True, tag_field="type", tag="failed"):
    """Why a task has no answer."""

    failure: Failure


class NativeOps(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of the calls in the graphs that a backend partitioned, those that it left to eager: how many of `calls`, and
    their ops, the most frequent first.
    """

    left: int
    calls: int
    ops: tuple[str, ...] = ()


class Conformed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="conformed"):
    """How one program compares with eager: its numbers, and its time where they agree. `native` is None where the
    backend partitions no graphs; `p` is as in SpeedChange.
    """

    report: DiffReport
    graphs: int = 0
    breaks: int = 0
    native: NativeOps | None = None
    eager: Latency | None = None
    compiled: Latency | None = None
    p: float | None = None
    machine: Machine = Machine()


TaskResult = Measured | Checked | Timed | Conformed | Failed


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One program on one backend. `status` "failed" has a `reason`; what was measured by then is there.

    `peak_bytes`: on a GPU what the allocator held at most, on a CPU what the process grew by from before the program
    was loaded. `items_per_s` counts the batch. `caveats` say what makes a figure doubtful.
    """

    program: str  # as it was named; `file` is the same wherever one stands
    backend: str
    file: str = ""
    status: Status = "ok"
    reason: str = ""
    kind: CallKind = "forward"
    device: str = ""
    dtype: str = ""
    batch: int | None = None
    size: str = ""
    cold_compile_s: float | None = None
    warm_compile_s: float | None = None
    latency_ms: Latency | None = None
    forward_ms: Latency | None = None
    speedup: float | None = None
    items_per_s: float | None = None
    peak_bytes: int | None = None
    graphs: int | None = None
    breaks: int | None = None
    violations: int | None = None
    diff: Outcome | None = None
    diff_note: str = ""
    caveats: tuple[str, ...] = msgspec.field(default=(), name="marks")
    options: dict[str, OptionValue] = {}
    dynamic: bool | None = None
    stance: str = ""
    settings: dict[str, OptionValue] = {}
    dynamic_sources: tuple[str, ...] = ()
    program_hash: str = ""
    machine: Machine | None = None
    at: float = 0.0

    @property
    def key(self) -> RowKey:
        """File, backend, device, dtype, batch and what torch was set to: rows that share them measured the same."""
        return self.file, self.backend, self.device, self.dtype, self.batch, set_to(self)

    def _repr_html_(self) -> str | None:
        return html_of(self)


class Rows(list[Row]):
    """The rows of a benchmark, which draw themselves together in a notebook."""

    def _repr_html_(self) -> str | None:
        return html_of(self)


class SpeedChange(msgspec.Struct, frozen=True):
    """`ratio`: the new median over the old one. `p`: how likely as unlike samples are where nothing changed."""

    now: Row
    before: Row
    ratio: float
    p: float
    what: tuple[str, ...] = ()  # else changed: the program, torch, the device

    @property
    def direction(self) -> Direction:
        """ "same" where it is not significant, or no more than the noise of one of the two."""
        assert self.now.latency_ms is not None and self.before.latency_ms is not None
        return direction_of(self.now.latency_ms, self.before.latency_ms, self.ratio, self.p)


def direction_of(now: Latency, before: Latency, ratio: float, p: float) -> Direction:
    """Which way a time changed by `ratio`: "same" where `p` is not significant, or the noise of one is as large."""
    least = max(LEAST_CHANGE, now.noise / 2, before.noise / 2)
    if p >= SIGNIFICANT or abs(ratio - 1) <= least:
        return "same"
    return "faster" if ratio < 1 else "slower"


def file_of(program: Program) -> str:
    """The program's absolute path, or its module's name, with its arguments: the same wherever one stands."""
    path = program.label if program.module else os.path.abspath(os.path.join(program.cwd, program.label))
    return " ".join((path, *program.argv))


def set_to(one: BenchCase | Row) -> str:
    """Options, dynamic, stance, settings and dynamic sources in words, alike in whatever order they were given; ""
    where everything is torch's default.
    """
    parts = [f"{name}={value}" for name, value in sorted({**one.options, **one.settings}.items())]
    parts += [f"dynamic={one.dynamic}"] if one.dynamic is not None else []
    parts += [f"stance={one.stance}"] if one.stance else []
    return ", ".join((*parts, *(f"dynamic {source}" for source in sorted(one.dynamic_sources))))


IMPORT, LOAD, COMPILE, WARM_UP = "importing torch", "loading the program", "compiling", "warming up"
CALLS, MEMORY = "timing calls", "measuring memory"
KERNELS, PEAKS = "timing kernels", "the machine's peaks"
COMPARE = "compiling, and comparing with eager"

PLANS: dict[Task, tuple[str, ...]] = {
    "cold": (IMPORT, LOAD, COMPILE),
    "warm": (IMPORT, LOAD, COMPILE, WARM_UP, CALLS, MEMORY),
    "check": (IMPORT, LOAD, COMPARE),
    "kernels": (IMPORT, LOAD, COMPILE, WARM_UP, KERNELS, PEAKS),
    "conform": (IMPORT, LOAD, COMPARE, CALLS),
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
