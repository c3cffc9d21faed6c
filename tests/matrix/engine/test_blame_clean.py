"""Is nothing blamed in programs that are compiled right: no stage, and no kernel?"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from idbg import KernelDiff
from idbg.schema.diff import DiffReport
from tests.harness import clean_models, diff_models

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
ALL = {**diff_models.MODELS, **clean_models.MODELS}  # the examples' models, smaller; and others
PACKAGES = {"efficientnet": "torchvision", "deeplab": "torchvision", "resnet18": "torchvision"}


def nothing_is_blamed(report: DiffReport) -> None:
    assert report.verdict == "passed", [
        (diff.name, diff.failed_by, diff.baseline) for diff in (*report.outputs, *report.gradients) if not diff.passed
    ] or [side.failure for side in report.sides]
    assert report.first_wrong_stage is None and report.culprit is None
    assert report.kernels and report.stages, report.notes
    assert any(stage.judged for stage in report.stages), [stage.reason for stage in report.stages]


@pytest.mark.parametrize("name", ["attention", "mlp_train"])
def test_nothing_is_blamed_in_an_example(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    model, inputs, *loss = module.program()
    report = KernelDiff(model, inputs, loss=loss[0] if loss else None, per_kernel=True).compare()
    nothing_is_blamed(report)
    assert report.mode == "float64" and not report.float64_missing
    assert bool(report.gradients) == bool(loss)


def made(name: str) -> tuple[torch.nn.Module, Any]:
    pytest.importorskip(PACKAGES.get(name, "transformers"))
    torch.manual_seed(0)
    return ALL[name]()


# `state_space` is the block of `mamba`, and is compared in bfloat16 in test_diff_models; `mixtral` has no layer that
# training changes, and its forward is compared with its backward
@pytest.mark.parametrize("name", [name for name in ALL if name not in ("state_space", "mixtral")])
def test_nothing_is_blamed_in_a_model(name: str) -> None:
    model, inputs = made(name)
    report = KernelDiff(model.eval(), inputs, per_kernel=True).compare()
    nothing_is_blamed(report)
    if name in diff_models.MODELS:
        assert report.mode == "float64" and not report.float64_missing
        assert report.outputs and all(diff.baseline for diff in report.outputs)


@pytest.mark.parametrize("name", ["mixtral", "efficientnet"])
def test_nothing_is_blamed_in_a_backward(name: str) -> None:
    model, inputs = made(name)
    report = KernelDiff(model.train(), inputs, backward=True, per_kernel=True).compare()
    nothing_is_blamed(report)
    assert report.gradients
