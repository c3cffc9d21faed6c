"""Who is guilty on a GPU: an option that breaks Triton's kernels, a wrong kernel, an index that is out of bounds."""

from pathlib import Path

import pytest
import torch

from idbg.bisect.job import bisected
from idbg.bisect.options import of_texts
from idbg.schema.bisection import Question
from idbg.schema.programs import Program, Target
from idbg.views.bisection import answer_sentence

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")]

MODEL = """
import torch


def model(x, w):
    h = x @ w
    return (h.sin() + 1).relu().sum(1)


def program():
    torch.manual_seed(0)
    return model, (torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda"))
"""
OUT_OF_BOUNDS = """
import torch


def model(table, index):
    return table[index].sin() + 1


def program():
    return model, (torch.randn(16, 4, device="cuda"), torch.tensor([1, 2, 1 << 40], device="cuda"))
"""


def program(folder: Path, text: str) -> Program:
    (folder / "p.py").write_text(text)
    return Program("p.py", cwd=str(folder))


@pytest.mark.parametrize("how", ["compile_error", "runtime_error", "accuracy"])
def test_of_two_option_sets_the_option_that_matters(how: str, tmp_path: Path) -> None:
    bad = of_texts([f"triton.inject_relu_bug_TESTING_ONLY={how}", "max_fusion_size=32"])
    question = Question(
        "options", program(tmp_path, MODEL), Target(backend="inductor"), sets=(bad, {}), names=("bad", "good")
    )
    found = bisected(question)
    assert (
        answer_sentence(found) == f"it fails with triton.inject_relu_bug_TESTING_ONLY={how!r} alone (of 2 differences)"
    )


def test_a_wrong_triton_kernel_is_of_a_lowering(tmp_path: Path) -> None:
    target = Target(backend="inductor", options={"triton.inject_relu_bug_TESTING_ONLY": "accuracy"})
    found = bisected(Question("compiler", program(tmp_path, MODEL), target))
    assert found.part is not None
    assert found.part.subsystem == "lowerings"
    assert found.part.application is not None
    assert "relu" in found.part.application.what


def test_an_index_out_of_bounds_is_the_programs_own(tmp_path: Path) -> None:
    found = bisected(Question("compiler", program(tmp_path, OUT_OF_BOUNDS), Target(backend="inductor")))
    assert found.part is not None
    assert found.part.backend == "python"
