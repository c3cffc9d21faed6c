"""Replay one launch of a wrapper alone, on copies of what it was called with in a run.

`replay` calls it in this process; script.py writes the same call as a standalone script. Both take the call, its
result's members and the buffers that it only writes from the launch's plan.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from idbg.engine.kerneldiff.kernel_attribution.memory import MemoryCopies, MemoryRegion
from idbg.engine.kerneldiff.kernel_attribution.plan import LaunchPlan
from idbg.engine.kerneldiff.kernel_attribution.recorder import RecordedLaunch

CALLS = 4  # every second one finds other values in the buffers that the launch only writes


def replay(plan: LaunchPlan, recorded: RecordedLaunch) -> list[dict[str, Tensor]]:
    """What the launch writes in each of CALLS calls, by the buffers' names. Raises what the launch raises."""
    code = compile(plan.launch.text, "<the launch>", "eval")
    results: list[dict[str, Tensor]] = []
    for number in range(CALLS):
        memory = recorded.memory.duplicate()
        values = {
            name: memory.at(value) if isinstance(value, MemoryRegion) else value
            for name, value in recorded.values.items()
        }
        for name in plan.output_only if number % 2 else ():
            out, before = values[name], results[0].get(name)
            if isinstance(out, Tensor):
                _spoil(out, before)
        with torch.no_grad(), _synchronized(values):
            result = eval(code, vars(plan.watch.graph.module), values)  # the wrapper's own call, on copies
        results.append(dict(_written(plan, recorded, memory, result)))
    return results


def _spoil(out: Tensor, before: Tensor | None) -> None:
    """Fill a buffer with values that cannot pass for a result: NaN, and for integers the inverse of `before`."""
    if out.dtype.is_floating_point or out.dtype.is_complex:
        out.fill_(float("nan"))
    elif before is not None and before.shape == out.shape:
        out.copy_(before.logical_not() if out.dtype == torch.bool else before.bitwise_not())


@contextmanager
def _synchronized(values: Mapping[str, object]) -> Iterator[None]:
    """Wait for the GPU before and after: the launch may use another stream than the copies did."""
    devices = {value.device for value in values.values() if isinstance(value, Tensor) and value.device.type == "cuda"}
    for device in devices:
        torch.cuda.synchronize(device)
    yield
    for device in devices:
        torch.cuda.synchronize(device)


def _written(
    plan: LaunchPlan, recorded: RecordedLaunch, memory: MemoryCopies, result: object
) -> Iterator[tuple[str, Tensor]]:
    names: dict[str, object] = dict.fromkeys(plan.launch.assigned, result)
    for name, text in plan.members:
        names[name] = eval(text, {}, names)  # as the wrapper itself has it: `buf8[0]`
    for buffer in plan.writes:
        region = recorded.regions.get(buffer.name)
        in_memory = region is not None and region.start in memory.storages
        value = memory.at(region) if region is not None and in_memory else names.get(buffer.name)
        if isinstance(value, Tensor):
            yield buffer.name, value
