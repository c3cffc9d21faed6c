"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import re

import pytest
import torch
import torch._inductor.config
from torch import Tensor, nn
from torch.fx import Graph

from idbg import KernelDiff
from idbg.schema.remarks import Remark
from tests.harness.plants import PLANTS
from tests.harness.plants.code import edited
from tests.harness.plants.plant import Plant, misnamed


def is_quick(plant: Plant) -> bool:
    """The first of its kind; templates take seconds to compile."""
    return plant.kind != "template" and plant is next(each for each in PLANTS if each.kind == plant.kind)


def as_parameter(plant: Plant) -> object:
    marks = [] if is_quick(plant) else [pytest.mark.slow]
    return pytest.param(plant, id=plant.id, marks=marks)


@pytest.mark.parametrize("plant", [as_parameter(plant) for plant in PLANTS if "cpu" in plant.devices])
def test_a_planted_error_is_named(plant: Plant) -> None:
    report = plant.compared()
    assert not misnamed(plant, report), report.summary()


def doubled(x: Tensor) -> Tensor:
    return x.sin() * 1.07


def wrong_in_its_first_launch(text: str) -> str:
    text = re.sub(r'(extern "C"[^{]*\{)', r"\1 static int calls = 0; const float off = calls++ ? 0.0f : 9.0f;", text)
    return re.sub(r"(\w+)\.store\(", r"(\1 + at::vec::Vectorized<float>(off)).store(", text)


def test_what_fails_in_one_run_and_not_again_accuses_no_cache() -> None:
    once = Plant("kernel", "once", doubled, ((8, 16),), edited(wrong_in_its_first_launch), "kernels", "kernel", "")
    report = once.compared()
    assert report.verdict == "failed" and Remark("not repeated") in report.notes
    assert report.culprit is None and not any(stage.bad for stage in report.stages)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(nn.functional.gelu(x))  # the norm hides most of what a factor does


@pytest.mark.slow
def test_of_two_nodes_that_a_pass_changed_the_first_is_named_although_what_follows_hides_it() -> None:
    def larger(graph: Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.mul.Tensor and isinstance(node.args[1], float):
                node.args = (node.args[0], node.args[1] * 1.01)

    torch.manual_seed(0)
    with torch._inductor.config.patch(post_grad_custom_post_pass=larger):
        report = KernelDiff(Normed().eval(), torch.randn(8, 32), per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert stage is not None and (stage.stage, stage.node, stage.line) == (
        "post_grad",
        "mul",
        Normed.forward.__code__.co_firstlineno + 1,
    ), report.summary()
