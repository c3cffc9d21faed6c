"""What is the program with another dtype or another batch?"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._pytree import tree_leaves, tree_map

from idbg.engine.compat import fx
from idbg.engine.program.load import Workload
from idbg.schema.errors import BadInput

DTYPES = {
    "float32": torch.float32,
    "fp32": torch.float32,
    "float16": torch.float16,
    "fp16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
    "float64": torch.float64,
    "fp64": torch.float64,
}


SHOWN = 2  # inputs


def in_dtype(workload: Workload, name: str) -> Workload:
    """The workload with its floating weights and inputs cast to the dtype. Raises BadInput for a dtype that is not
    known, and for a model that is a function.
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
    """The workload with inputs of `batch` along dim 0, repeated or cut: those that are as long there as the first
    tensor is.
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


def said(workload: Workload) -> str:
    """How large the program is: "11.7 M weights, f32[1,3,224,224]"."""
    weights = sum(weight.numel() for weight in workload.model.parameters()) if isinstance(workload.model, Module) else 0
    leaves = tree_leaves((workload.args, dict(workload.kwargs)))
    inputs = [str(fx.tensor_meta(leaf)) for leaf in leaves if isinstance(leaf, Tensor)]
    more = f" +{len(inputs) - SHOWN}" if len(inputs) > SHOWN else ""
    counted = f"{weights / 1e6:,.3g} M weights" if weights >= 1e5 else f"{weights:,} weights" if weights else ""
    return ", ".join(filter(None, (counted, *inputs[:SHOWN]))) + more


def batch_of(workload: Workload) -> int | None:
    """The length of dim 0 of the first tensor input that has dims; None where there is none."""
    leaves = tree_leaves((workload.args, dict(workload.kwargs)))
    sizes = [leaf.shape[0] for leaf in leaves if isinstance(leaf, Tensor) and leaf.dim()]
    return sizes[0] if sizes else None
