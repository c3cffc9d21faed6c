"""Records of the time of each kernel, and of what bounds it. What was not measured is None."""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Literal

import msgspec

from idbg.schema.graphs import Part
from idbg.schema.html_repr import html_of

CallKind = Literal["forward", "training"]
"""A training step is forward, loss and backward: where the program has a loss."""

Bound = Literal["memory", "compute", "launch", "unknown"]

LAUNCHES = 3.0  # up to so many empty launches' time a kernel is launch-bound
BEYOND = 1.05  # of a copy's bandwidth: no memory gives so much
IMPOSSIBLE = 1.2  # of a matmul's FLOP/s: the matmul was measured while something else took the machine
LITTLE = 0.05  # of either peak: a kernel that is further from both waits for something else
MUCH = 0.5  # of a copy's bandwidth: less says nothing of a kernel whose arithmetic is not counted


FAR = 0.5  # of the peak that it is nearest to: a kernel below it could take half of its time or less
COSTLY = 0.05  # of a call: what a kernel could save above it is a finding


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine was measured to do: a copy (bytes read and written), a square matmul by dtype ("float32"), and
    launches with next to no work by the kind of kernel. `threads` is 0 on a GPU. `others` is the part of the processors
    that other processes used meanwhile.
    """

    device: str
    torch: str
    threads: int = 0
    precision: str = ""  # of float32 products, as torch.set_float32_matmul_precision has it
    copy_bytes_per_s: float | None = None
    matmul_flops_per_s: dict[str, float] = {}
    launch_us: dict[str, float] = {}
    others: float | None = None


class KernelTime(msgspec.Struct, frozen=True, kw_only=True):
    """One place in a wrapper that launches a kernel. `handle` is that of its `KernelCall`; "" where Inductor gave none.

    `samples_us`: of each run the mean of its `launches`. `share`: of the program's time. `bytes` and `flops` of one
    launch: `bytes` are those of all tensors that it is given or returns, also where it reads only a part of one;
    `flops` are counted of products, convolutions and attention in kernels that do nothing else of weight. The peaks
    are the machine's for a copy, for a matmul of its dtype, and for an empty launch of its kind.
    """

    frame: str
    part: Part
    name: str
    kind: str  # "cpp", "triton", "extern"
    handle: str = ""
    line: int = 0
    nodes: tuple[str, ...] = ()
    device: str = ""
    dtype: str = ""
    launches: float = 1.0  # a run
    samples_us: tuple[float, ...]
    share: float
    bytes: int | None = None
    flops: int | None = None
    peak_bytes_per_s: float | None = None
    peak_flops_per_s: float | None = None
    empty_us: float | None = None

    @property
    def median_us(self) -> float:
        """The median of one launch, in microseconds."""
        return median(self.samples_us)

    @property
    def p95_us(self) -> float:
        """The 95th percentile of one launch, in microseconds."""
        return quantiles(self.samples_us, n=20, method="inclusive")[-1] if len(self.samples_us) > 1 else self.median_us

    @property
    def run_us(self) -> float:
        """The median of all its launches in one run, in microseconds."""
        return self.median_us * self.launches

    @property
    def bytes_per_s(self) -> float | None:
        """How many bytes of its tensors a second: by the median time; None where they are not known."""
        return _over(self.bytes, self.median_us / 1e6)

    @property
    def flops_per_s(self) -> float | None:
        """How many counted FLOPs a second: by the median time; None where they are not counted."""
        return _over(self.flops, self.median_us / 1e6)

    @property
    def of_memory(self) -> float | None:
        """Its bandwidth over a copy's: above 1 in the caches, or where it reads a part of what it is given; None where
        one is not known.
        """
        return _over(self.bytes_per_s, self.peak_bytes_per_s)

    @property
    def of_compute(self) -> float | None:
        """Its FLOP/s over those of a matmul of its dtype; None where one is not known, or the matmul's cannot be."""
        return None if self.beyond_compute else _over(self.flops_per_s, self.peak_flops_per_s)

    @property
    def beyond_compute(self) -> bool:
        """Whether it is so much faster than the measured matmul that this cannot be the machine's peak."""
        return (_over(self.flops_per_s, self.peak_flops_per_s) or 0.0) > IMPOSSIBLE

    @property
    def of_empty(self) -> float | None:
        """Its median over that of an empty launch of its kind; None where that was not measured."""
        return _over(self.median_us, self.empty_us)

    @property
    def could_save(self) -> float:
        """The share of a call that it would take less at the peak to which it is nearest; 0 where that is not known, or
        the time of a launch is its limit.
        """
        nearest = max(self.of_memory or 0.0, self.of_compute or 0.0, 1 / self.of_empty if self.of_empty else 0.0)
        return self.share * (1 - nearest) if 0 < nearest < 1 and self.bound != "launch" else 0.0

    @property
    def is_slow(self) -> bool:
        """Whether it is far from every peak of the machine, and costs a call much by that."""
        nearest = max(self.of_memory or 0.0, self.of_compute or 0.0)
        return nearest < FAR and self.could_save >= COSTLY

    @property
    def bound(self) -> Bound:
        """What it would wait for at the machine's peaks, by the roofline model."""
        memory, compute = self.of_memory, self.of_compute
        if self.of_empty is not None and self.of_empty <= LAUNCHES:
            return "launch"
        if memory is not None and compute is not None:
            return "unknown" if max(memory, compute) < LITTLE else "memory" if memory >= compute else "compute"
        return "memory" if memory is not None and memory >= MUCH and self.flops is None else "unknown"


class KernelTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The kernels of one call of a program, in the order of their first launches; `kind` says what a call is.

    Runs with and without the timing of kernels alternated: `hooked_samples_us` and `samples_us` are whole calls.
    `untimed`: launches ("name:3") that were compiled and did not run. `problem`: why those of a graph were not found.
    """

    kernels: tuple[KernelTime, ...]
    samples_us: tuple[float, ...]
    hooked_samples_us: tuple[float, ...]
    peaks: Peaks
    kind: CallKind = "forward"
    untimed: tuple[str, ...] = ()
    problem: str = ""

    @property
    def runs(self) -> int:
        """How many calls were timed with each launch timed, and as many without."""
        return len(self.samples_us)

    @property
    def by_time(self) -> Sequence[KernelTime]:
        """The kernels, that with the longest time in a run first."""
        return sorted(self.kernels, key=lambda kernel: kernel.run_us, reverse=True)

    @property
    def total_us(self) -> float:
        """The median of a call whose kernels are not timed, in microseconds."""
        return median(self.samples_us)

    @property
    def hooked_total_us(self) -> float:
        """The median of a call whose kernels are timed, in microseconds."""
        return median(self.hooked_samples_us)

    @property
    def sum_us(self) -> float:
        """Microseconds of all launches in a run: the median of the runs' own sums, as noise strikes not all at once."""
        taken = [[sample * kernel.launches for sample in kernel.samples_us] for kernel in self.kernels]
        return median(sum(run) for run in zip(*taken, strict=False)) if taken else 0.0

    @property
    def missed_us(self) -> float:
        """What a call takes beyond its kernels: Python, allocations, guards, gaps. Below 0 where timing the kernels
        took longer than all that.
        """
        return self.total_us - self.sum_us

    @property
    def perturbation(self) -> float:
        """How much longer a call takes while its kernels are timed, over the time without: 0.02 is 2 %."""
        return self.hooked_total_us / self.total_us - 1

    def _repr_html_(self) -> str | None:
        return html_of(self)


def _over(value: float | None, by: float | None) -> float | None:
    return None if value is None or not by else value / by
