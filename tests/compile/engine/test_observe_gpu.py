"""The same on a CUDA GPU: Triton kernels and extern calls compared launch by launch, and a planted one found."""

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch
import torch._functorch.aot_autograd
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache
from torch.nn import functional as F

from idbg.schema.diff import KernelError
from idbg.views import remarks
from tests.harness.observed_launches import first_bad, observe_model

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

UNOBSERVED = ("random numbers", "steps inside of a node")


@pytest.fixture(autouse=True)
def _on_the_gpu() -> None:
    torch.manual_seed(0)
    PyCodeCache.cache_clear()


def mean_square(output: torch.Tensor) -> torch.Tensor:
    return output.float().square().mean()


def assert_clean(kernels: tuple[KernelError, ...]) -> None:
    assert kernels
    for kernel in kernels:
        assert not kernel.bad, kernel
        assert kernel.observed or any(reason in remarks.sentence(kernel.reason) for reason in UNOBSERVED), kernel


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(64, 192), nn.Linear(64, 64), nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, 4, 16).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / 4).softmax(-1)
        return x + self.out((F.dropout(weights, 0.1, True) @ v).transpose(1, 2).reshape(x.shape))


class Fused(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, 4, 16).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 128))


def conv() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 8, 3))


CASES = {
    "mlp": (mlp, (64, 256)),
    "conv": (conv, (4, 3, 32, 32)),
    "attention": (Attention, (4, 33, 64)),
    "fused attention": (Fused, (4, 33, 64)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_no_kernel_of_a_clean_training_step_is_bad(case: str, dtype: torch.dtype):
    if case == "attention" and dtype == torch.bfloat16 and torch.__version__.startswith("2.11"):
        pytest.skip("torch 2.11 itself cannot compile it: IndexError in produce_guards")
    make, shape = CASES[case]
    model = make().to("cuda", dtype)
    kernels = observe_model(model, (torch.randn(shape, dtype=dtype, device="cuda"),), loss=mean_square)
    assert_clean(kernels)
    assert {kernel.part for kernel in kernels} == {"forward", "backward"}  # the backward's own thread too
    assert any(kernel.name.startswith("triton_") and kernel.observed for kernel in kernels)


def test_a_reduction_in_parts_and_a_concatenation():
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(), x.var(0), torch.cat([x[:64].sin(), (x[:64] @ x.t()[:, :64]).cos()], 1).contiguous()

    assert_clean(observe_model(program, (torch.randn(4000, 512, device="cuda"),)))


def planted(monkeypatch: pytest.MonkeyPatch, edit: Callable[[str], str]) -> None:
    """Every Triton kernel's source is edited on its way to the compiler."""
    original = AsyncCompile.triton

    def triton(self: AsyncCompile, kernel_name: str, source_code: str, device_str: str = "cuda") -> object:
        return original(self, kernel_name, edit(source_code), device_str)

    monkeypatch.setattr(AsyncCompile, "triton", triton)


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    first = ((x @ w) * 1.25).softmax(-1)
    second = ((first @ w) * 1.0382 + first).softmax(-1)
    return (((second @ w) * 1.5).softmax(-1) @ w) * 1.75


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_edited_triton_kernel_is_found_in_one_run(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype):
    inputs = [torch.randn(96, 96, dtype=dtype, device="cuda") for _ in range(2)]
    planted(monkeypatch, lambda source: source.replace("1.0382", "1.5382"))
    kernels = observe_model(chain, tuple(inputs))
    place = first_bad(kernels)
    assert place is not None and "softmax" in kernels[place].name
    assert [kernel.bad for kernel in kernels].count(True) == 1
    assert kernels[place].diff is not None and not kernels[place].diff.passed


def test_a_lost_tail_of_a_triton_kernel_is_found(monkeypatch: pytest.MonkeyPatch):
    def edit(source: str) -> str:
        return re.sub(r"xmask = xindex < xnumel", "xmask = xindex < xnumel - 8", source)

    x = torch.randn(333, 333, device="cuda")
    planted(monkeypatch, edit)
    kernels = observe_model(lambda x: (x.sin() * 1.0383 + 2) @ x, (x,))
    assert first_bad(kernels) == 0, kernels


def test_a_triton_source_edited_by_hand_in_the_wrapper_is_found(monkeypatch: pytest.MonkeyPatch):
    def observed() -> tuple[KernelError, ...]:
        monkeypatch.setattr(torch._functorch.aot_autograd, "AOT_COUNTER", count(7000))  # as in a fresh process
        PyCodeCache.cache_clear()
        return observe_model(lambda x: ((x @ x) * 1.0384).cos() @ x, (x,))

    x = torch.randn(64, 64, device="cuda")
    assert_clean(observed())
    path = Path(next(module for module in reversed(PyCodeCache.modules) if hasattr(module, "call")).__file__ or "")
    text = path.read_text()
    assert "1.0384" in text
    path.write_text(text.replace("1.0384", "1.0385"))
    try:
        assert first_bad(observed()) == 1
    finally:
        path.write_text(text)


def test_observing_makes_no_second_copy_of_the_weights():
    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(32))).to("cuda")
    x = torch.randn(8, 1024, device="cuda")
    weights = sum(each.nbytes for each in model.parameters())
    with torch.no_grad():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        kernels = observe_model(model, (x,))
        torch.cuda.synchronize()
    assert_clean(kernels)
    assert all(kernel.isolated is not None for kernel in kernels if kernel.observed)
    assert torch.cuda.max_memory_allocated() - before < 0.9 * weights
