"""What is one call of a workload: a forward, or a training step?"""

import platform
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._pytree import tree_leaves

from idbg.engine.compat import gpu
from idbg.engine.program.load import Model, Workload

Call = Callable[[], object]


def call_of(workload: Workload, compiled: Model) -> Call:
    """A function that makes one call of the compiled model: a forward, with gradients recorded where the workload says
    so, or, of a program with a loss, a training step.
    """
    args, kwargs, loss = workload.args, dict(workload.kwargs), workload.loss

    def forward() -> object:
        if workload.grad and gpu.in_use():
            # no backward will tell CUDA graphs that this forward's memory may be used again
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        with torch.set_grad_enabled(workload.grad):
            return compiled(*args, **kwargs)

    if loss is None:
        return forward
    leaves = [leaf for leaf in tensors_of(workload) if leaf.is_leaf and leaf.requires_grad]

    def step() -> object:
        value = loss(compiled(*args, **kwargs))
        value.backward()  # type: ignore[no-untyped-call]
        for leaf in leaves:  # or the second step would add to the first's
            leaf.grad = None
        return value

    return step


def tensors_of(workload: Workload) -> list[Tensor]:
    """The tensors among the workload's inputs, then the model's weights."""
    leaves = [leaf for leaf in tree_leaves((workload.args, dict(workload.kwargs))) if isinstance(leaf, Tensor)]
    return [*leaves, *workload.model.parameters()] if isinstance(workload.model, Module) else leaves


def processor() -> str:
    """The CPU's name as Linux tells it; the architecture's elsewhere."""
    try:
        rows = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (row.partition(":")[2].strip() for row in rows if row.startswith("model name"))
    return next(named, platform.machine())
