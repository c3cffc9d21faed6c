"""The same comparison on a CUDA GPU: the same random numbers on all sides, gradients, and a fault that is caught."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.compat import dynamo

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


def model(dtype: torch.dtype) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.3), nn.GELU(), nn.Linear(64, 32))
    return layers.to("cuda", dtype), torch.randn(128, 64, device="cuda", dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_a_clean_training_step_with_dropout_fails_nothing_and_changes_nothing(dtype: torch.dtype) -> None:
    layers, x = model(dtype)
    state = {name: value.clone() for name, value in layers.state_dict().items()}
    generator = torch.cuda.get_rng_state()
    report = KernelDiff(layers, x, backward=True, runs=2).compare()
    assert report.passed and report.mode == "float64", report
    assert len(report.gradients) == 7 and all(variance.name for variance in report.variance)
    assert all(torch.equal(value, state[name]) for name, value in layers.state_dict().items())
    assert torch.equal(torch.cuda.get_rng_state(), generator)


def test_a_lost_column_is_caught() -> None:
    def losing(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        compiled = dynamo.lookup_backend("inductor")(gm, inputs)

        def run(*args: Tensor) -> Any:
            first, *others = compiled(*args)
            first[..., -1] = 0
            return (first, *others)

        return run

    layers, x = model(torch.float32)
    report = KernelDiff(layers.eval(), x, test=losing).compare()
    assert report.verdict == "failed" and "column" in report.outputs[0].failed_by


def test_attention_runs_in_float64() -> None:
    q = torch.randn(2, 4, 64, 32, device="cuda", dtype=torch.bfloat16)
    report = KernelDiff(lambda q: nn.functional.scaled_dot_product_attention(q, q, q), q).compare()
    assert report.passed and report.mode == "float64", report
