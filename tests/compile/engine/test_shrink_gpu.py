"""On a GPU: what Triton gets wrong comes down to one element there, and does not move to the CPU, where it is right."""

from pathlib import Path

import pytest
import torch

from idbg.engine.repro.draft import Differs
from tests.harness.shrinking import candidate, run_here, shrink

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


def test_a_wrong_triton_kernel_comes_down_to_one_element_on_its_device(tmp_path: Path):
    lines = ["y = torch.nn.functional.linear(x, w)", "z = torch.nn.functional.relu(y)", "r = z.view(4, 4, 16)"]
    tensors = {name: torch.randn(16, 16, device="cuda") for name in ("x", "w")}
    setting = 'torch._inductor.config.triton.inject_relu_bug_TESTING_ONLY = "accuracy"'
    first = candidate(lines, "(r,)", tensors, check=Differs(least=1e-3), settings=(setting,))
    fails = run_here(tmp_path)
    assert fails(first)
    found, told = shrink(first, fails)
    assert fails(found)
    assert [each.text for each in found.draft.arguments] == ['torch.ones(1, 1, device="cuda")']
    assert found.draft.statements == ("z = torch.nn.functional.relu(y)",)
    assert len(told.asked) <= 12
