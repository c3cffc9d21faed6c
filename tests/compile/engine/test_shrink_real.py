"""Scripts that fail as Inductor compiles them: what is left of them fails in the same way."""

from pathlib import Path
from typing import Any

import pytest
import torch

from idbg.engine.repro.draft import Candidate, Check, Differs, Raises
from tests.harness.shrinking import candidate, run_here, shrink


def with_relu(bug: str, check: Check, **extras: Any) -> Candidate:
    """A program whose relu Inductor's C++ gets wrong in one of the ways that torch has for its own tests."""
    lines = [
        "# model.py:7: hidden = self.fc(x).relu()",
        "linear = torch.nn.functional.linear(x, w, b)",
        "relu = torch.nn.functional.relu(linear, inplace=False)",
        "view = relu.view(4, 4, 16)",
    ]
    setting = f'torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "{bug}"'
    generator = torch.Generator().manual_seed(7)
    shapes = {"x": (16, 8), "w": (16, 8), "b": (16,)}
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    return candidate(lines, "(view,)", tensors, check=check, settings=(setting,), **extras)


@pytest.mark.parametrize(
    ("bug", "check"),
    [("compile_error", Raises("CppCompileError", "compile error!")), ("accuracy", Differs(least=1e-4))],
)
def test_a_wrong_relu_comes_down_to_it_alone_and_one_element(bug: str, check: Check, tmp_path: Path):
    fails = run_here(tmp_path)
    found, told = shrink(with_relu(bug, check), fails)
    assert fails(found)
    relu = "relu = torch.nn.functional.relu(linear)"
    assert found.draft.statements == ("# model.py:7: hidden = self.fc(x).relu()", relu)
    assert [(each.name, each.text) for each in found.draft.arguments] == [("linear", "torch.ones(1, 1)")]
    assert found.draft.result == "(relu,)"
    assert found.draft.settings == with_relu(bug, check).draft.settings
    assert len(told.asked) <= 9
