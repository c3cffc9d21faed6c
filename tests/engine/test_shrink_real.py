"""Scripts that fail as Inductor compiles them: what is left of them fails in the same way, and reads well."""

from pathlib import Path
from typing import Any

import pytest
import torch

from idbg.engine.minify.candidate import Candidate
from idbg.engine.repro.draft import Check, Differs, Raises
from tests.harness.shrinking import candidate, run_here, shrink

pytestmark = pytest.mark.usefixtures("warm")


def with_relu(bug: str, check: Check, **extras: Any) -> Candidate:
    """A program whose relu Inductor's C++ gets wrong in one of the ways that torch has for its own tests."""
    lines = [
        "# model.py:7: hidden = self.fc(x).relu()",
        "linear = torch.nn.functional.linear(x, w, b)",
        "relu = torch.nn.functional.relu(linear, inplace=False)",
        "view = relu.view(4, 4, 16)",
    ]
    setting = f"torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = '{bug}'"
    generator = torch.Generator().manual_seed(7)
    tensors = {
        name: torch.randn(*shape, generator=generator) for name, shape in (("x", (16, 8)), ("w", (16, 8)), ("b", (16,)))
    }
    more = ("torch._dynamo.config.cache_size_limit = 3",)
    return candidate(lines, "(view,)", tensors, check=check, settings=(setting, *more), **extras)


def test_a_compile_error_comes_down_to_one_element(tmp_path: Path):
    first = with_relu("compile_error", Raises("CppCompileError", "compile error!"))
    found, told = shrink(first, run_here(tmp_path))
    assert run_here(tmp_path)(found)
    print((tmp_path / "repro.py").read_text(), len(told.asked))


def test_a_wrong_result_comes_down_to_one_element(tmp_path: Path):
    first = with_relu("accuracy", Differs(least=1e-4))
    found, told = shrink(first, run_here(tmp_path))
    assert run_here(tmp_path)(found)
    print((tmp_path / "repro.py").read_text(), len(told.asked))
