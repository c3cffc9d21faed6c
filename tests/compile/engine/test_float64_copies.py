"""Large weights are in float64 only where an op takes them: the same numbers and gradients, and no copy of all."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from idbg.engine.kerneldiff.float64 import copies
from idbg.engine.kerneldiff.sides.run import SideValues, run_float64
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.program.load import Workload


class Odd(nn.Module):
    """Reads weights without an op, writes to one, returns one and a view of one, and computes a part twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 64), nn.Linear(64, 64)
        self.inner = nn.Sequential(self.first, nn.GELU(), nn.LayerNorm(64), self.last)
        self.table = nn.Parameter(torch.randn(16, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        read = float(self.table.detach().numpy()[0, 0]) + self.table.tolist()[1][1]
        y = self.inner(x) @ self.table.t() + read
        with torch.no_grad():
            self.first.bias.add_(1)
        again = checkpoint(self.inner, x, use_reentrant=False)
        return y, self.table, self.last.weight.view(-1), again


def loss(out: tuple[Tensor, ...]) -> Tensor:
    return out[0].square().mean() + out[3].sum()


def given(large: int, monkeypatch: pytest.MonkeyPatch) -> SideValues:
    monkeypatch.setattr(copies, "LARGE", large)
    torch.manual_seed(0)
    side = run_float64(Subject(Workload(Odd(), (torch.randn(8, 64),), loss=loss)), backward=True)
    assert side.values is not None, side.error
    return side.values


def test_weights_that_come_where_they_are_taken_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, taken = (given(large, monkeypatch) for large in (2**60, 0))
    for ours, theirs in ((copied.outputs, taken.outputs), (copied.gradients, taken.gradients)):
        assert ours.keys() == theirs.keys() and len(ours) >= 5
        for name, value in ours.items():
            other = theirs[name]
            assert isinstance(value, Tensor) and isinstance(other, Tensor) and value.dtype == torch.float64
            assert torch.equal(value, other), name
    assert not copies._lazy


def test_at_most_a_few_weights_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[int] = []
    original = copies._fill

    def fill(empty: Tensor, data: Tensor, *, values: bool = True) -> None:
        original(empty, data, values=values)
        held = [each.untyped_storage().nbytes() for each, _ in copies._lazy.values()]
        filled.append(sum(size > 0 for size in held))

    monkeypatch.setattr(copies, "_fill", fill)
    monkeypatch.setattr(copies, "LARGE", 0)
    model = nn.Sequential(*(nn.Linear(32, 32, bias=False) for _ in range(8)))
    side = run_float64(Subject(Workload(model, (torch.randn(4, 32),), loss=Tensor.sum)), backward=True)
    assert side.values is not None and max(filled) == 1 and len(filled) > 16
