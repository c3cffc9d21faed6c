"""Triton kernels of the user's own on a CUDA GPU: observed, timed, lowered, and held against the user's reference."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import idbg
from idbg.engine import lowered
from idbg.engine.bench.kernels import time_kernels
from idbg.engine.kerneldiff.kernels import user_reference
from idbg.engine.kerneldiff.kernels.observe import observing
from idbg.views import remarks
from tests.harness.observed_launches import observe_model

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def double_kernel(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def, name-defined]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(x + at, tl.load(x + at, mask=inside) * 2, mask=inside)


def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    z = torch.empty_like(x)
    add_kernel[(4,)](x.sin(), y, z, x.numel(), BLOCK=256)
    w = z * 2
    double_kernel[(4,)](w, w.numel(), BLOCK=256)
    return (w @ w).relu(), z.cos()


@pytest.fixture(autouse=True)
def _no_references() -> Iterator[None]:
    yield
    user_reference._FUNCTIONS.clear()


def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(32, 32, device="cuda"), torch.randn(32, 32, device="cuda")


def test_a_program_with_kernels_of_the_users_own_is_observed():
    kernels = observe_model(program, inputs())
    assert all(kernel.isolated is not None and not kernel.bad for kernel in kernels), kernels
    own = [kernel for kernel in kernels if kernel.name.startswith(("add_kernel", "double_kernel"))]
    assert len(own) == 2 and all("no reference" in remarks.sentence(kernel.reason) for kernel in own)


@pytest.mark.parametrize("error", [0.0, 0.1])
def test_a_kernel_is_held_against_the_reference_that_the_user_gives(error: float):
    @idbg.reference(add_kernel)
    def add(x: Tensor, y: Tensor, out: Tensor, n: int, BLOCK: int) -> None:
        out.copy_(x + y + error)

    kernels = observe_model(program, inputs())
    assert [kernel.name.rpartition("_")[0] for kernel in kernels if kernel.bad] == (["add_kernel"] if error else [])


def test_they_are_timed_and_lowered_like_others():
    times = time_kernels(program, inputs(), runs=5)
    assert {kernel.kind for kernel in times.kernels if kernel.name.startswith(("add_kernel", "double_"))} == {"triton"}
    torch._dynamo.reset()
    with observing() as observation:
        torch.compile(program)(*inputs())
    kernels = [kernel for watch in observation.watches for kernel in watch.code.kernels]
    (own,) = [kernel for kernel in kernels if kernel.name.startswith("add_kernel")]
    assert "def add_kernel" in own.source
    assert {"TTIR", "PTX"} <= {text.name for text in lowered.lowered(own).texts}
