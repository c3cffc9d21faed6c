"""Do one task of a benchmark row in this process: measure its compile time and latency, time its kernels, or compare it
with eager, in its numbers alone or in its time too.
"""

import dataclasses
import os
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

import torch
from msgspec.structs import replace

import idbg
from idbg.accelerators.model import Accelerator
from idbg.accelerators.parse import parse
from idbg.analysis.significance import mann_whitney
from idbg.config import places
from idbg.config.options import INDUCTOR, family
from idbg.engine import backends
from idbg.engine.backends import TargetBackend
from idbg.engine.bench import resources
from idbg.engine.bench.kernels import time_kernels
from idbg.engine.bench.latency import latency, resolution, seconds
from idbg.engine.bench.resources import OtherProcesses
from idbg.engine.bench.workload import Call, batch_of, call_of, describe, in_batches_of, in_dtype, tensors_of
from idbg.engine.capture.run import RunCapture, capturing
from idbg.engine.compat import comparing, settings
from idbg.engine.compat.hooks import Feature
from idbg.engine.compat.partitions import Split, observe_splits
from idbg.engine.failures import fallbacks
from idbg.engine.failures.describe import failure_of
from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.program.load import Model, Programs, Workload
from idbg.engine.program.machine import processor_name
from idbg.engine.program.target import check_device, conditions_of, options_of
from idbg.engine.program.torch_compile import CurrentBackend, original_torch_compile
from idbg.format.amounts import counted
from idbg.schema.bench import (
    CALLS,
    COMPARE,
    COMPILE,
    EAGER,
    LOAD,
    MEMORY,
    WARM_UP,
    BenchCase,
    Checked,
    Conformed,
    Failed,
    Machine,
    Measured,
    NativeOps,
    ReportStep,
    Task,
    TaskResult,
    Timed,
    ignore_step,
)
from idbg.schema.diff import DiffReport, sayable
from idbg.schema.events import SessionEvent
from idbg.schema.programs import Target
from idbg.schema.runs import Run

NAMED = 3  # of the tensors that are wrong
CONFORM_SECONDS = 0.5  # for the warm-up and for the samples of a side


class _Enough(BaseException):
    """The program's workload was measured: stop the rest of its script."""


def answer(case: BenchCase, task: Task, tell: ReportStep = ignore_step) -> TaskResult:
    """Do the task, and call `tell` at each step. An exception of the program is returned as data."""
    results: list[TaskResult] = []
    before = resources.resident()

    def use(workload: Workload, _: str, __: CurrentBackend | None) -> None:
        with original_torch_compile():
            sized = _sized(workload, case)
            name = case.backend.name
            with fallbacks.fallback_messages(name) as lost:
                answered = _answered(sized, case, task, before, tell)
            results.append(Failed(fallbacks.failure(name, lost.found[0])) if lost.found else answered)
        raise _Enough

    target = Target(
        case.backend.name,
        device=case.device,
        options=case.options,
        options_for=case.options_for,
        stance=case.stance,
        settings=case.settings,
        dynamic_sources=case.dynamic_sources,
    )
    tell(LOAD)
    try:
        check_device(target)
        options, _ = options_of(target, backends.find(target.backend))
        target, _ = conditions_of(target)
        case = replace(case, options=options)
        if case.threads:
            torch.set_num_threads(case.threads)
        programs = Programs({} if case.batch is None else {"batch": case.batch})
        programs.run(case.program, target, RunCapture(0, lambda event: None, None), use)
    except _Enough:
        return results[0]
    except BaseException as error:  # the process's border: whatever ends the program is the row's reason
        if results:  # the program swallowed what was to end it, and then did something else
            return results[0]
        return Failed(failure_of(error, case.program, case.backend.name))
    return results[0]


def _answered(workload: Workload, case: BenchCase, task: Task, before: int | None, tell: ReportStep) -> TaskResult:
    # the program may have compiled it for another backend: a row compiles it itself
    workload = dataclasses.replace(workload, model=comparing.uncompiled(workload.model))
    _use_device(workload)
    match task:
        case "check":
            tell(COMPARE)
            return _checked(workload, case)
        case "conform":
            return _conformed(workload, case, tell)
        case "kernels":
            return _timed(workload, case, tell)
        case "cold" | "warm":
            return _measured(workload, case, task, before, tell)


def _use_device(workload: Workload) -> None:
    """Make the program's GPU the current device: synchronization, events and the allocator's peak are of that."""
    device = next((leaf.device for leaf in tensors_of(workload) if leaf.is_cuda), None)
    if device is not None:
        torch.cuda.set_device(device)


def _sized(workload: Workload, case: BenchCase) -> Workload:
    if case.dtype:
        workload = in_dtype(workload, case.dtype)
    if case.batch is not None and batch_of(workload) != case.batch:
        workload = in_batches_of(workload, case.batch)
    return workload


# Time and memory


def _measured(workload: Workload, case: BenchCase, task: Task, before: int | None, tell: ReportStep) -> Measured:
    machine, compiled = _machine(workload), _compiled(workload.model, case)
    call = call_of(workload, compiled)
    tell(COMPILE, "calling it once" if case.backend.name == EAGER else "")
    first = seconds(call)
    measured = Measured(
        compile_s=None if case.backend.name == EAGER else first,
        kind="training" if workload.loss else "forward",
        items=batch_of(workload),
        size=describe(workload),
        machine=machine,
    )
    if task == "cold":
        return measured
    forward, busy = _forward(workload, compiled) if workload.loss else None, OtherProcesses()
    tell(WARM_UP)
    whole = latency(call, case.runs, begins=lambda: tell(CALLS, _calls(case.runs, forward)))
    others, alone = busy.share(), latency(forward, case.runs) if forward else None
    tell(MEMORY)
    return replace(
        measured,
        latency=whole,
        machine=replace(machine, others=others),
        forward=alone,
        peak_bytes=resources.peak_bytes(call, before),
        resolution_ms=1e3 * resolution(),
    )


def _calls(runs: int, forward: Call | None) -> str:
    most = counted(runs, "training step" if forward else "call")
    return f"timing up to {most}{', then the forward alone' if forward else ''}"


def _compiled(model: Model, case: BenchCase) -> Model:
    """The model as the case's backend runs it; for eager the model itself."""
    backend = case.backend
    if backend.name == EAGER:
        return model
    if backend.name == INDUCTOR:
        # torch's type of them is narrower than what it takes
        options = cast("dict[str, str | int | bool | Callable[..., object]]", _options(case))
        return torch.compile(model, options=options or None, dynamic=case.dynamic)
    return torch.compile(model, backend=_target_backend(case, rules=""), dynamic=case.dynamic)


def _options(case: BenchCase) -> dict[str, object]:
    """The Inductor options of the case: its mode's, overridden by its own."""
    mode = case.backend.mode if family(case.backend.name) == INDUCTOR else ""
    return settings.mode_options(mode or None, case.dynamic) | case.options


def _target_backend(case: BenchCase, rules: str) -> TargetBackend:
    """The case's backend (ours, a plug-in's or torch's) with its options, which rejects nothing; without `rules` it
    checks none.
    """
    backend = case.backend
    accelerator = parse(rules) if rules else Accelerator(name="none")
    target_backend = TargetBackend(backends.find(backend.name), accelerator, strict=False, rules=rules)
    return target_backend.with_options(_options(case))


def _forward(workload: Workload, compiled: Model) -> Call:
    """A function that runs only the forward of a training step, with the code that was compiled for the step."""
    return call_of(dataclasses.replace(workload, loss=None, grad=True), compiled)


def _machine(workload: Workload) -> Machine:
    on_gpu = any(leaf.is_cuda for leaf in tensors_of(workload))
    return Machine(
        host=platform.node(),
        device=torch.cuda.get_device_name() if on_gpu else processor_name(),
        threads=torch.get_num_threads(),
        processors=os.cpu_count() or 1,
        torch=str(torch.__version__),
        python=platform.python_version(),
        idbg=idbg.__version__,
    )


def _timed(workload: Workload, case: BenchCase, tell: ReportStep) -> Timed:
    """Time each kernel of the compiled program."""
    times = time_kernels(
        workload.model,
        workload.args,
        workload.kwargs,
        loss=workload.loss,
        grad=workload.grad,
        compile=lambda model: _compiled(model, case),
        runs=case.runs,
        cache=places.cache(),
        tell=tell,
    )
    return Timed(times)


# Is it right?


def _checked(workload: Workload, case: BenchCase) -> Checked:
    """Compile once and compare with eager: graphs, breaks, violations, and whether the numbers agree."""
    backend = _target_backend(case, case.rules)
    report, counted, capture = _compared(workload, case, backend)
    return Checked(
        graphs=_graphs(counted),
        breaks=counted.times_broken,
        violations=len(capture.violations) if backend.backend.checks and case.rules else None,
        diff=report.verdict,
        diff_note=_why(report),
    )


def _native(splits: Sequence[Split]) -> NativeOps | None:
    """What backends left to eager; None where they split no graph."""
    if not splits:
        return None
    left = Counter(str(node.target) for split in splits for node, _ in split.native)
    calls = left.total() + sum(len(nodes) for split in splits for nodes in split.compiled.values())
    return NativeOps(left.total(), calls, tuple(op for op, _ in left.most_common()))


def _conformed(workload: Workload, case: BenchCase, tell: ReportStep) -> Conformed:
    """Compare with eager in numbers, and where they agree in time, on one machine in one process."""
    tell(COMPARE)
    splits: list[Split] = []
    with observe_splits(Feature("backend partitions"), lambda split, _: splits.append(split)):
        report, counted, _ = _compared(workload, case, _target_backend(case, rules=""))
    conformed = Conformed(
        report=sayable(report),
        graphs=_graphs(counted),
        breaks=counted.times_broken,
        native=_native(splits),
        machine=_machine(workload),
    )
    if not report.passed or not case.runs:
        return conformed
    tell(CALLS)
    calls = [call_of(workload, model) for model in (workload.model, _compiled(workload.model, case))]
    calls[1]()
    eager, compiled = (latency(call, case.runs, CONFORM_SECONDS, warmup=CONFORM_SECONDS) for call in calls)
    return replace(conformed, eager=eager, compiled=compiled, p=mann_whitney(compiled.samples, eager.samples))


def _graphs(run: Run) -> int:
    return sum(graph.stage == "dynamo" for graph in run.graphs)


def _compared(workload: Workload, case: BenchCase, backend: TargetBackend) -> tuple[DiffReport, Run, RunCapture]:
    """The comparison with eager, and what was captured meanwhile."""
    captured: list[SessionEvent] = []
    capture = RunCapture(0, captured.append, backend.accelerator)
    with capturing(capture):
        report = ModelDiff(
            workload.model,
            workload.args,
            workload.kwargs,
            loss=workload.loss,
            grad=workload.grad,
            test=backend,
            dynamic=case.dynamic,
        ).compare()
    counted = Run(0, case.program, Target(), 0.0)
    for event in captured:
        counted.apply(event)
    return report, counted, capture


def _why(report: DiffReport) -> str:
    failures = [f"{side.name}: {side.failure.first_line}" for side in report.sides if side.failure]
    wrong = [diff.name for diff in (*report.outputs, *report.gradients) if not diff.passed]
    if failures or not wrong:
        return "; ".join(failures)
    return f"{counted(len(wrong), 'tensor')} wrong: {', '.join(wrong[:NAMED])}{', …' if len(wrong) > NAMED else ''}"
