"""On a CUDA GPU: a user's Triton kernel travels with a repro, and is launched there."""

from pathlib import Path

import pytest
import torch

from tests.harness.repro_bench import Bench, run

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

PROGRAM = """\
import triton
import triton.language as tl

BLOCK = tl.constexpr(16)

@triton.jit
def added(x, one):
    return x + one

@triton.jit
def add_kernel(x_ptr, out_ptr, n, ONE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, added(x, ONE), mask=offsets < n)

torch._inductor.config.force_disable_caches = True

def bad(graph):
    for node in graph.nodes:
        if "sin" in str(node.target):
            node.args = ()

torch._inductor.config.post_grad_custom_post_pass = bad

def f(x):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), ONE=1)
    return out.sin()

torch.compile(f)(torch.ones(64, device="cuda"))
"""


def test_a_triton_kernel_of_the_programs_travels(tmp_path: Path) -> None:
    try:
        script = Bench(tmp_path, PROGRAM, backend="inductor").script()
        torch._inductor.config.post_grad_custom_post_pass = None
        status, out = run(script)
    finally:
        torch._inductor.config.post_grad_custom_post_pass = None
    text = script.read_text()
    assert (status, "REPRODUCED" in out) == (1, True), text + out
    assert "def add_kernel" in text
    assert "def added" in text, "what the kernel calls comes along"
    assert "BLOCK = tl.constexpr(16)" in text
    assert "add_kernel[(" in text.partition("def program(")[2]
