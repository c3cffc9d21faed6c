"""Prepare a workload to be measured: its call, its dtype and its batch size."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import Module

from idbg.engine.compat import fx, gpu
from idbg.engine.compat.torch_types import tree_leaves, tree_map
from idbg.engine.program.load import Model, Workload
from idbg.schema.errors import BadInput

Call = Callable[[], object]
DTYPES = {
    name: getattr(torch, long)
    for long, short in (("float32", "fp32"), ("float16", "fp16"), ("bfloat16", "bf16"), ("float64", "fp64"))
    for name in (long, short)
}
SHOWN = 2  # inputs


def call_of(workload: Workload, compiled: Model) -> Call:
    """A function that makes one call of the compiled model: a forward (with gradients recorded if the workload says
    so), or a training step if there is a loss.
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
    return [*_inputs(workload), *_weights(workload)]


def _inputs(workload: Workload) -> list[Tensor]:
    leaves = tree_leaves((workload.args, dict(workload.kwargs)))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _weights(workload: Workload) -> list[Tensor]:
    return list(workload.model.parameters()) if isinstance(workload.model, Module) else []


def in_dtype(workload: Workload, name: str) -> Workload:
    """The workload with its floating weights and inputs cast to the dtype. Raises BadInput for an unknown dtype, and
    for a model that is a function.
    """
    if name not in DTYPES:
        raise BadInput(f"there is no dtype {name!r}", hint=f"use one of {', '.join(DTYPES)}")
    if not isinstance(workload.model, Module):
        raise BadInput("the program's model is a function: its dtype is not ours to change", hint="leave --dtype out")
    dtype = DTYPES[name]

    def turned(leaf: object) -> object:
        return leaf.to(dtype) if isinstance(leaf, Tensor) and leaf.is_floating_point() else leaf

    args, kwargs = tree_map(turned, (workload.args, dict(workload.kwargs)))
    return replace(workload, model=workload.model.to(dtype), args=args, kwargs=kwargs)


def in_batches_of(workload: Workload, batch: int) -> Workload:
    """The workload with inputs of `batch` along dim 0, repeated or cut: those that have the batch size of the first
    tensor.
    """
    own = batch_of(workload)
    if own is None:
        raise BadInput("no input of the program has a batch", hint="leave --batch out")

    def resized(leaf: object) -> object:
        if not isinstance(leaf, Tensor) or not leaf.dim() or leaf.shape[0] != own:
            return leaf
        return leaf[torch.arange(batch, device=leaf.device) % own]

    args, kwargs = tree_map(resized, (workload.args, dict(workload.kwargs)))
    return replace(workload, args=args, kwargs=kwargs)


def describe(workload: Workload) -> str:
    """The size of the program: "11.7 M weights, f32[1,3,224,224]"."""
    weights = sum(weight.numel() for weight in _weights(workload))
    inputs = [str(fx.tensor_meta(leaf)) for leaf in _inputs(workload)]
    more = f" +{len(inputs) - SHOWN}" if len(inputs) > SHOWN else ""
    counted = f"{weights / 1e6:,.3g} M weights" if weights >= 1e5 else f"{weights:,} weights" if weights else ""
    return ", ".join(filter(None, (counted, *inputs[:SHOWN]))) + more


def batch_of(workload: Workload) -> int | None:
    """The length of dim 0 of the first tensor input that has dims; None if there is none."""
    return next((leaf.shape[0] for leaf in _inputs(workload) if leaf.dim()), None)
