"""A partitioner that draws random numbers again in the backward, where it should keep those of the forward, and one
that saves two values in each other's place.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch.fx import GraphModule

from tests.harness.plants.plant import Plant

aten = torch.ops.aten
RANDOM = (aten.native_dropout, aten.rand_like, aten.randn_like, aten.rand, aten.randn, aten.bernoulli)


@contextmanager
def redrawn() -> Iterator[None]:
    """Min-cut takes an op that draws for one that is cheap, and right to do again."""
    from torch._functorch import partitioners

    original = partitioners.get_default_op_list

    def get_default_op_list() -> Any:
        found = original()
        found.random_ops.clear()
        found.recomputable_ops.update(RANDOM)
        found.fusible_ops.update(RANDOM)
        return found

    with patch.object(partitioners, "get_default_op_list", get_default_op_list):
        yield


class SwapSaved(CustomPartitionerFn):
    """The forward returns two saved values of one shape in the wrong order; the names are still right."""

    def __call__(self, gm: GraphModule, joint_inputs: Any, **options: Any) -> tuple[GraphModule, GraphModule]:
        forward, backward = min_cut_rematerialization_partition(gm, joint_inputs, **options)
        output = forward.graph.output_node()
        returned: list[Any] = list(cast("tuple[Any, ...]", output.args[0]))
        one, other = (at for at, node in enumerate(returned) if getattr(node, "target", None) is aten.tanh.default)
        returned[one], returned[other] = returned[other], returned[one]
        output.args = (tuple(returned),)
        forward.recompile()
        return forward, backward

    def uuid(self) -> None:
        return None


@contextmanager
def swapped() -> Iterator[None]:
    with torch._inductor.config.patch(custom_partitioner_fn=SwapSaved()):
        yield


def twice(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).tanh()
    h = (h @ w).tanh()  # guilty
    return h @ w


def dropped(x: Tensor, w: Tensor) -> Tensor:
    h = x.sin()
    h = F.dropout(h, 0.5)  # guilty
    return h @ w


def masked(x: Tensor, w: Tensor) -> Tensor:
    h = x.cos()
    h = h * (torch.rand_like(h) > 0.5)  # guilty
    return h @ w


def noisy(x: Tensor, w: Tensor) -> Tensor:
    h = (x @ w).sin()
    h = h * torch.randn_like(h)  # guilty
    return h @ w


SQUARE = ((32, 32), (32, 32))

PLANTS = (
    Plant(
        "recompute", "dropout", dropped, SQUARE, redrawn,
        stage="partitioned", maker="partitioner", made_by="min_cut", backward=True,
    ),
    Plant(
        "recompute", "mask", masked, SQUARE, redrawn, dtype=torch.bfloat16,
        stage="partitioned", maker="partitioner", made_by="min_cut", backward=True,
    ),
    Plant(
        "recompute", "noise", noisy, SQUARE, redrawn,
        stage="partitioned", maker="partitioner", made_by="min_cut", backward=True,
    ),
    Plant(
        "saved", "swapped", twice, SQUARE, swapped,
        stage="partitioned", maker="partitioner", made_by="SwapSaved", backward=True,
    ),
)  # fmt: skip
