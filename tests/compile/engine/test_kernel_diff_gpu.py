"""The same comparison on a CUDA GPU: the same random numbers on all sides, gradients, and a fault that is caught."""

import gc
from collections.abc import Callable, Iterator
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


@pytest.fixture
def little_memory() -> Iterator[None]:
    """2.5 GiB more than is in use now."""
    gc.collect()
    torch.cuda.empty_cache()
    all_of_it = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2.5 * 2**30) / all_of_it)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
def test_float64_that_the_device_has_no_room_for_decides_all_the_same() -> None:
    """What waits moves to host memory; an op that then has no room is computed on the CPU, with all others."""
    torch.manual_seed(0)
    layers = [part for _ in range(4) for part in (nn.Linear(4096, 4096), nn.GELU())]
    module = nn.Sequential(*layers).to("cuda", torch.bfloat16)
    x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
    report = KernelDiff(module, x, backward=True, per_kernel=True).compare()
    assert not [stage for stage in report.stages if "memory" in str(stage.reason)], report
    assert report.passed and report.mode == "float64", report
    if report.float64_elsewhere is not None:
        assert report.float64_elsewhere.why == "cuda:0 has too little memory for it"
    else:
        assert "float64 moved" in [note.kind for note in report.notes]


class OtherWay(nn.Module):
    """Attention that has a mask of ones where it is compiled, as transformers': another kernel computes it. With
    dropout it draws a number more there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(64, 64) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (each(x).unflatten(-1, (4, 16)).transpose(1, 2) for each in (self.query, self.key, self.value))
        mask = torch.ones(32, 32, dtype=torch.bool, device=x.device) if torch.compiler.is_compiling() else None
        if self.training and torch.compiler.is_compiling():
            q = q + 0 * torch.rand(1, device=x.device)
        return nn.functional.scaled_dot_product_attention(q, k, v, mask, 0.1 if self.training else 0.0)


@pytest.fixture
def tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("tf32")
def test_a_gradient_that_is_zero_in_mathematics_is_as_wrong_as_tf32_leaves_it() -> None:
    torch.manual_seed(0)
    report = KernelDiff(OtherWay().cuda().eval(), torch.randn(4, 32, 64, device="cuda"), backward=True).compare()
    assert report.passed and report.mode == "float64", report


@pytest.mark.usefixtures("tf32")
def test_other_random_numbers_are_not_comparable_in_tf32_too() -> None:
    torch.manual_seed(0)
    report = KernelDiff(OtherWay().cuda().train(), torch.randn(4, 32, 64, device="cuda"), backward=True).compare()
    assert report.not_comparable and not any(each.failed for each in (*report.outputs, *report.gradients)), report
