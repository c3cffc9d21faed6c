"""Where each launch is waited for, is the program still compiled, and is the device waited for?"""

import sys
from collections import Counter

import pytest
import torch
from torch import Tensor

from idbg import KernelDiff
from idbg.engine.compat import gpu


@pytest.mark.slow
def test_what_is_waited_for_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode that Dynamo does not know to leave alone has it skip every frame: nothing would be compared."""
    waits: Counter[str] = Counter()

    def wait() -> None:
        waits[sys._getframe(1).f_code.co_name] += 1

    def model(x: Tensor, w: Tensor) -> Tensor:
        return (x.sin() @ w).cos()

    monkeypatch.setattr(gpu, "wait", wait)
    report = KernelDiff(model, (torch.randn(8, 8), torch.randn(8, 8)), sync=True).compare()
    assert report.passed and report.notes == (), report.summary()
    assert waits["wait_for_op"] >= 3 and waits["wait_for_launch"] >= 3
