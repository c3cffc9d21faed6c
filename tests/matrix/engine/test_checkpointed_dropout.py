"""Activation checkpointing with dropout inside: every stage is judged, with the numbers that the forward drew."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._inductor import config
from torch._prims.rng_prims import graphsafe_run_with_rng_state
from torch.utils.checkpoint import checkpoint

from idbg.engine.kerneldiff.float64.mode import NotInFloat64
from idbg.engine.kerneldiff.stages.evaluate import computed
from idbg.kernel_diff import KernelDiff
from idbg.schema.diff import DiffReport

pytestmark = [pytest.mark.usefixtures("seeded"), pytest.mark.slow]


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

    def inside(self, x: Tensor) -> Tensor:
        return nn.functional.dropout(self.second(self.first(x).relu() * 0.25), 0.3)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = x + checkpoint(self.inside, x.tanh(), use_reentrant=False)  # type: ignore[no-untyped-call]
        return x


def compared() -> DiffReport:
    torch._dynamo.reset()
    return KernelDiff(Network(), torch.randn(6, 16), backward=True, per_kernel=True).compare()


def test_stages_draw_the_forwards_numbers_again_and_are_judged() -> None:
    report = compared()
    stages = {stage.stage: stage for stage in report.stages}
    assert report.passed and stages["post_grad"].judged and not stages["post_grad"].reason
    assert stages["post_grad"].error is not None and stages["post_grad"].error < 1e-12


def test_a_wrong_pass_below_the_recomputed_draw_is_named() -> None:
    def wrong(graph: Any) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.mul.Tensor and node.args[1] == 0.25:
                node.args = (node.args[0], 0.26)

    with config.patch(post_grad_custom_post_pass=wrong):
        report = compared()
    stages = {stage.stage: stage for stage in report.stages}
    assert not report.passed and stages["post_grad"].bad
    assert all(stages[name].judged and not stages[name].bad for name in ("joint", "joint_passes", "partitioned"))


def test_numbers_drawn_again_by_a_generator_of_a_gpu_are_not_judged() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    again = graph.call_function(graphsafe_run_with_rng_state, (torch.ops.aten.native_dropout.default, x, 0.5, True))
    graph.output((again,))
    with pytest.raises(NotInFloat64, match="checkpointed region draws its random numbers again"):
        computed(torch.fx.GraphModule(torch.nn.Module(), graph), [torch.ones(4)])
