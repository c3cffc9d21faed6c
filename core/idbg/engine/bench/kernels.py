"""Time each kernel of a compiled model, and the whole call."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean, median

import torch

from idbg.engine.bench.latency import WARMUP_SECONDS, WINDOW, seconds, settle, synchronize
from idbg.engine.bench.launches import Clock, Launches, launches
from idbg.engine.bench.peaks import peaks
from idbg.engine.bench.work import Work, WorkProbe
from idbg.engine.bench.workload import Call, call_of
from idbg.engine.compat import gpu
from idbg.engine.program.load import Loss, Model, Workload
from idbg.engine.program.torch_compile import original_torch_compile
from idbg.format.amounts import counted
from idbg.schema.bench import COMPILE, KERNELS, PEAKS, WARM_UP, ReportStep, ignore_step
from idbg.schema.errors import BadInput
from idbg.schema.kernel_times import KernelTime, KernelTimes, Peaks

RUNS = 50
LEAST = 5
MOST_SECONDS = 30.0  # of timed runs; the warm-up has its own
HEAD_START, MOST_HEAD_START = 1.5, 0.1  # of the time that a call takes; seconds


def time_kernels(
    model: Model,
    args: tuple[object, ...] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    loss: Loss | None = None,
    grad: bool = False,
    compile: Callable[[Model], Model] | None = None,
    runs: int = RUNS,
    most: float = MOST_SECONDS,
    cache: Path | None = None,
    tell: ReportStep = ignore_step,
) -> KernelTimes:
    """Time every launch in `runs` forwards of the compiled model, or in training steps if there is a loss; fewer if
    they take longer than `most` seconds. With `grad` a forward is that of a training step. `compile` defaults to
    torch.compile. `cache` is where the machine's peaks are stored; `tell` is called at each step.

    CUDA graphs are off while the kernels are timed. The model's gradients are dropped, and its random and counter state
    advances; the caller restores it. Raises BadInput if no kernel of Inductor's runs.
    """
    if runs < 1:
        raise BadInput(f"kernels cannot be timed in {runs} runs", hint="runs is 1 or more")
    torch.compiler.reset()
    with original_torch_compile(), launches() as launched:
        workload = Workload(model, args, dict(kwargs or {}), loss, grad)
        call = call_of(workload, (compile or torch.compile)(model))
        tell(COMPILE)
        call()  # which compiles, and is no part of the warm-up's time
        tell(WARM_UP)
        warm, _ = settle(call, min(most, WARMUP_SECONDS))
        seen = work_seen(launched, call)
        wanted = max(min(runs, LEAST), min(runs, int(most / (3 * median(warm[-WINDOW:]) + 1e-9))))
        measured = TimedRuns(launched, call, seen)
        tell(KERNELS, f"timing {counted(len(seen), 'kernel')} in {counted(wanted, 'run')}")
        for _ in range(wanted):
            measured.run()
    with original_torch_compile():
        device = next((work.device for work in seen.values() if work.device), torch.device("cpu"))
        return measured.times(peaks(device, cache, partial(tell, PEAKS)), training=loss is not None)


def work_seen(launched: Launches, call: Call) -> dict[int, Work]:
    """The work of one run's launches, by number. Raises BadInput if there are none."""
    look = WorkProbe(launched.all)
    with launched.through(look):
        call()
    if not look.seen:
        raise BadInput(
            launched.problem or "no kernel of Inductor's ran, so there are none to time",
            hint="use a backend that lowers by Inductor, without CUDA graphs and C++ wrappers",
        )
    return look.seen


class TimedRuns:
    """Whole runs, alternating with and without timed launches, and the samples of both."""

    def __init__(self, launched: Launches, call: Call, seen: dict[int, Work]) -> None:
        self.launches, self.call, self.seen = launched, call, seen
        self.clock = Clock([number for number, work in seen.items() if work.device])
        self.plain: list[float] = []
        self.hooked: list[float] = []
        self.samples: dict[int, list[float]] = defaultdict(list)

    def run(self) -> None:
        self.plain.append(1e6 * seconds(self.call))
        with self.launches.through(self.clock):
            self.hooked.append(1e6 * seconds(self.call))
            times = self.clock.read()
            if self.clock.on_gpu:
                # or the time between two events would be the processor's, where it is behind the GPU
                gpu.keep_busy(min(HEAD_START * self.hooked[-1] / 1e6, MOST_HEAD_START))
                self.call()
                synchronize()
                times = self.clock.read()
        by_number: dict[int, list[float]] = defaultdict(list)
        for number, microseconds in times:
            by_number[number].append(microseconds)
        for number, each in by_number.items():
            self.samples[number].append(fmean(each))

    def times(self, machine: Peaks, *, training: bool) -> KernelTimes:
        total = median(self.plain)
        return KernelTimes(
            kernels=tuple(self._kernels(total, machine)),
            samples_us=tuple(self.plain),
            hooked_samples_us=tuple(self.hooked),
            peaks=machine,
            kind="training" if training else "forward",
            untimed=tuple(self._untimed()),
            problem=self.launches.problem,
        )

    def _kernels(self, total: float, machine: Peaks) -> Iterator[KernelTime]:
        main = "cuda" if self.clock.on_gpu else "cpu"
        for number, work in self.seen.items():
            if not (samples := self.samples[number]):
                continue
            launched = self.launches.all[number]
            here = (work.device.type if work.device else "cpu") == main
            known = machine if here else Peaks(device="", torch="")
            yield KernelTime(
                frame=launched.frame,
                part=launched.graph.part,
                name=launched.launch.name,
                kind=launched.kind,
                handle=launched.launch.handle,
                line=launched.launch.line,
                nodes=launched.launch.nodes,
                device=str(work.device or "cpu"),
                dtype=work.dtype,
                launches=work.launches,
                samples_us=tuple(samples),
                share=median(samples) * work.launches / total,
                bytes=work.bytes and work.bytes // work.launches,
                flops=work.flops and work.flops // work.launches,
                peak_bytes_per_s=known.copy_bytes_per_s,
                peak_flops_per_s=known.matmul_flops_per_s.get(work.dtype),
                empty_us=known.launch_us.get(launched.kind),
            )

    def _untimed(self) -> Iterator[str]:
        for number, launched in enumerate(self.launches.all):
            if number not in self.samples:
                yield launched.launch.handle or launched.launch.name
