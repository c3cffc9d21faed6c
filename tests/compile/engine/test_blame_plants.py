"""Is every error that is planted into Inductor's pipeline named at its stage, its node, its maker and its line?"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
import torch._inductor.config
from torch import Tensor, nn
from torch._inductor import freezing
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, GraphModule

from idbg import KernelDiff
from idbg.reports.diff import ReadableReport
from idbg.schema.remarks import Remark
from tests.harness.plants import PLANTS
from tests.harness.plants.code import edited, replaced
from tests.harness.plants.passes import hooked
from tests.harness.plants.plant import Plant, misnamed, without_caches


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


def copied(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.clone(), x.sin()


def viewed(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.view(-1), x.sin()


def without_copies(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.clone.default):
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)


def with_copies(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_method", target="view"):
        with graph.inserting_after(node):
            copy = graph.call_method("clone", (node,))
        node.replace_all_uses_with(copy, delete_user_cb=lambda user, copy=copy: user is not copy)


def of_memory(program: Callable[..., object], planting: Callable[[], AbstractContextManager[None]]) -> ReadableReport:
    with without_caches({}), planting():
        return KernelDiff(program, torch.randn(8, 16), per_kernel=True).compare()


@pytest.mark.parametrize(
    ("program", "hook", "edit", "stage", "reason"),
    [
        (copied, "post_grad_custom_pre_pass", without_copies, "post_grad", "alias made"),
        (viewed, "pre_grad_custom_pass", with_copies, "pre_grad", "alias lost"),
    ],
)
def test_a_pass_that_changes_in_whose_memory_an_output_lies_is_named(
    program: Callable[..., object], hook: str, edit: Callable[[Graph], None], stage: str, reason: str
) -> None:
    report = of_memory(program, hooked(hook, edit))
    found = report.first_wrong_stage
    assert [each.failed_by for each in report.outputs] == [("alias",), ()] and found is not None, report.summary()
    assert (found.stage, found.line) == (stage, program.__code__.co_firstlineno + 1)
    assert [each.kind for each in found.reason] == [reason]  # type: ignore[union-attr]
    assert found.made_by is not None and (found.made_by.kind, found.made_by.name) == ("pass", hook)


def test_of_an_output_that_moves_below_the_graphs_the_report_has_what_is_not_judged() -> None:
    def returns_the_argument(text: str) -> str:
        return re.sub(r"return \(\w+, (\w+), \)", r"return (arg0_1, \1, )", text.replace("del arg0_1", "pass"))

    report = of_memory(copied, edited(returns_the_argument))
    assert report.verdict == "failed" and report.first_wrong_stage is None, report.summary()
    assert "alias elsewhere" in [note.kind for note in report.notes]
    assert "comes to lie in other memory is not judged" in report.summary()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["post_grad-constant-forward-float32", "template-cpp_bmm-forward-float32"])
def test_under_a_cpp_wrapper_a_pass_and_a_kernel_are_named(name: str) -> None:
    plant = next(each for each in PLANTS if each.id == name)
    report = replace(plant, settings={**plant.settings, "cpp_wrapper": True}).compared()
    assert not misnamed(plant, report), report.summary()
    assert [note.kind for note in report.notes if note.kind in ("Python wrapper", "partly observed")] == [
        "Python wrapper"
    ]


@pytest.mark.slow
def test_an_error_of_the_cpp_wrapper_alone_is_its_own() -> None:
    def swapped(text: str) -> str:
        return re.sub(r"(output_handles\[)0(\].*\n.*output_handles\[)1", r"\g<1>1\g<2>0", text)

    with without_caches({"cpp_wrapper": True}), edited(swapped)():
        report = KernelDiff(lambda x: (x.cos(), x.sin()), torch.randn(8, 16), per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert stage is not None and stage.made_by is not None, report.summary()
    assert (stage.stage, stage.made_by.kind, stage.made_by.name) == ("kernels", "wrapper", "cpp_wrapper")


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


def of_frozen(planting: Callable[[], AbstractContextManager[None]] = nullcontext) -> ReadableReport:
    torch.manual_seed(0)
    model = Frozen().eval().requires_grad_(False)
    with without_caches({"freezing": True}), planting():
        return KernelDiff(model, torch.randn(8, 16), per_kernel=True).compare()


def tanh_for_relu(graph: Graph) -> None:
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default):
        node.target = torch.ops.aten.tanh.default


@contextmanager
def wrong_constants() -> Iterator[None]:
    original = freezing.replace_params_with_constants

    def replaced_by_others(gm: GraphModule, parameters: list[Tensor], metadata: object) -> list[int]:
        with unset_fake_temporarily():
            others = [each + 1.0 if each.ndim == 1 else each for each in parameters]
        return original(gm, others, metadata)

    with patch.object(freezing, "replace_params_with_constants", replaced_by_others):
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planting", "stage", "kind", "name"),
    [
        (hooked("post_grad_custom_post_pass", tanh_for_relu), "post_grad", "pass", "post_grad_custom_post_pass"),
        (edited(replaced(r"at::vec::clamp_min\((\w+), .*\);|\bmax_\w+", r"\1 * \1;")), "kernels", "kernel", "relu"),
        (wrong_constants, "partitioned", "pass", "freezing"),
    ],
    ids=["pass", "kernel", "freezing"],
)
def test_an_error_under_freezing_is_named(
    planting: Callable[[], AbstractContextManager[None]], stage: str, kind: str, name: str
) -> None:
    report = of_frozen(planting)
    found = report.first_wrong_stage
    assert report.verdict == "failed" and found is not None and found.made_by is not None, report.summary()
    assert (found.stage, found.made_by.kind) == (stage, kind) and name in found.made_by.name, report.summary()


@pytest.mark.slow
def test_all_stages_and_launches_of_a_right_frozen_model_are_judged() -> None:
    report = of_frozen()
    assert report.passed and all(kernel.observed for kernel in report.kernels), report.summary()
    assert "not judged" not in report.summary() and report.stages[-1].judged
