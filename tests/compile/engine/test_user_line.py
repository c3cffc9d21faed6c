"""Which of a stack's lines is the user's?"""

from pathlib import Path

import pytest
import torch

from idbg import KernelDiff
from idbg.engine.capture.fx import user_line
from idbg.engine.failures.owners import is_own
from idbg.reports.diff import summary

OWN = '  File "/home/me/model.py", line 12, in forward\n    h = F.pad(h, (1, 1))\n'
TORCHS = f'  File "{Path(torch.__file__).parent}/nn/functional.py", line 5896, in pad\n    return torch._C._nn.pad(x)\n'


def test_the_line_that_calls_torch_is_meant_and_not_one_inside_of_it() -> None:
    assert user_line(OWN + TORCHS) == ("/home/me/model.py", 12, "h = F.pad(h, (1, 1))")
    assert user_line(TORCHS)[1] == 5896, "where torch alone runs, its own"
    assert user_line("") == ("", 0, "")


@pytest.mark.parametrize(
    ("file", "generated"),
    [
        ("model.py", False),
        ("ab/model.py", False),
        ("triton_models/net.py", False),
        ("tmp_models/net.py", False),
        ("7x/c7xj45oagexynfvvv.py", True),
        ("c7jp45oagexynfvvvlsl5e4t5pdvk2zejyb4ebgnjc4nuqqhwsmf/wrapper.py", True),
        ("triton/0/ABC/triton_poi_fused.py", True),
    ],
)
def test_a_program_beside_its_cache_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, generated: bool
) -> None:
    """`TORCHINDUCTOR_CACHE_DIR=.`, or empty, puts the cache into the folder of the program."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert is_own(str(tmp_path / file)) != generated


@pytest.mark.slow
def test_a_kernel_of_an_optimizers_step_stands_at_the_line_that_calls_it() -> None:
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)

    def step() -> None:
        optimizer.step()

    report = KernelDiff(step, (), per_kernel=True).compare()
    places = {(kernel.file, kernel.line) for kernel in report.kernels}
    assert places == {(__file__, step.__code__.co_firstlineno + 1)}, summary(report)
