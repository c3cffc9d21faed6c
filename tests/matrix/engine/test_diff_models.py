"""Clean Inductor runs of real models fail nothing, and a fault planted into one of them is caught.

The same models in float32, and two examples, are in `test_blame_clean`, compared by kernel as well.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from idbg import KernelDiff
from idbg.engine.compat import dynamo
from idbg.schema.diff import DiffReport
from idbg.schema.remarks import Remark
from tests.harness.diff_models import MODELS

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def clean(report: DiffReport) -> None:
    assert report.verdict == "passed", [
        (diff.name, diff.failed_by, diff.baseline) for diff in (*report.outputs, *report.gradients) if not diff.passed
    ] or [side.failure for side in report.sides]
    assert report.mode == "float64" and not report.float64_missing
    assert {note.kind for note in report.notes if isinstance(note, Remark)} <= {"random as eager"}


def made(name: str, dtype: torch.dtype) -> tuple[torch.nn.Module, Any]:
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    return model.to(dtype), tree_map(lambda leaf: leaf.to(dtype) if leaf.is_floating_point() else leaf, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_a_clean_model_in_bfloat16_fails_nothing(name: str) -> None:
    model, inputs = made(name, torch.bfloat16)
    report = KernelDiff(model.eval(), inputs).compare()
    clean(report)
    assert report.outputs and all(diff.baseline for diff in report.outputs)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("vit", torch.float32), ("gpt2", torch.bfloat16), ("resnet18", torch.float32)],
    ids=["vit", "gpt2", "resnet18"],
)
def test_clean_gradients_with_dropout_fail_nothing(name: str, dtype: torch.dtype) -> None:
    model, inputs = made(name, dtype)
    report = KernelDiff(model.train(), inputs, backward=True).compare()
    clean(report)
    assert len(report.gradients) > 10


def test_the_example_of_a_whole_resnet_fails_nothing() -> None:
    spec = importlib.util.spec_from_file_location("resnet", EXAMPLES / "resnet.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    clean(KernelDiff(*module.program()).compare())


@pytest.mark.parametrize(
    ("dtype", "backend"),
    [(torch.float32, "aot_eager"), (torch.bfloat16, "inductor")],
    ids=["float32-aot_eager", "bfloat16-inductor"],
)
def test_a_column_that_a_backend_loses_in_a_real_model_is_caught(dtype: torch.dtype, backend: str) -> None:
    def losing(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        compiled = dynamo.lookup_backend(backend)(gm, inputs)

        def run(*args: Tensor) -> Any:
            first, *others = compiled(*args)
            first[..., -1] = 0
            return (first, *others)

        return run

    model, inputs = made("vit", dtype)
    report = KernelDiff(model.eval(), inputs, test=losing).compare()
    assert report.verdict == "failed" and "column" in report.outputs[0].failed_by
