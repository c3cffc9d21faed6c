"""Float64 that moves out of its device's memory gives the same figures, the same blame, and leaves nothing behind."""

import tempfile
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from idbg.engine.kerneldiff.api import ModelDiff
from idbg.engine.kerneldiff.float64 import memory
from idbg.engine.kerneldiff.float64.memory import Memory, WithinMemory
from idbg.schema.diff import DiffReport

GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]
LIMIT = 4 << 20  # bytes: two activations of the model in float64


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(512, 512) for _ in range(3)])
        self.norm = nn.LayerNorm(512)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.norm(nn.functional.gelu(layer(x))) + x
        return x


def compared(limit: int, device: str) -> DiffReport:
    torch.manual_seed(0)
    model, x = Residual().to(device), torch.randn(512, 512, device=device)
    return ModelDiff(model, (x,), backward=True, per_kernel=True, memory=limit).compare()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "host"),
    [
        pytest.param("cpu", None, id="file"),
        pytest.param("cuda", None, marks=GPU, id="cuda-host"),
        pytest.param("cuda", 0, marks=GPU, id="cuda-file"),
    ],
)
def test_what_moves_is_judged_as_what_stays(device: str, host: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if host is not None:
        monkeypatch.setattr(memory, "free_memory", lambda: host)
    before = set(Path(tempfile.gettempdir()).glob("idbg-float64-*"))
    stayed, moved = compared(0, device), compared(LIMIT, device)

    assert moved.verdict == "passed"
    assert moved.mode == "float64"
    assert all(row.judged for row in moved.stages if row.stage in ("dynamo", "post_grad", "kernels"))
    assert [(each.name, each.baseline) for each in (*moved.outputs, *moved.gradients)] == [
        (each.name, each.baseline) for each in (*stayed.outputs, *stayed.gradients)
    ]
    assert [(row.stage, row.judged, row.error) for row in moved.stages] == [
        (row.stage, row.judged, row.error) for row in stayed.stages
    ]
    assert [kernel.error for kernel in moved.kernels] == [kernel.error for kernel in stayed.kernels]
    assert [note.kind for note in moved.notes if note not in stayed.notes] == ["float64 moved"]
    assert set(Path(tempfile.gettempdir()).glob("idbg-float64-*")) <= before


def test_views_and_writes_in_place_see_one_memory_wherever_it_is() -> None:
    little = Memory(limit=1)
    with WithinMemory(little):
        base = torch.zeros(1024, 512)
        row = base[3]
        other = torch.ones(1024, 512) + 1  # base moves
        assert base.untyped_storage().nbytes() == 0
        row.add_(5)
        twice = base * 2
    assert little.release(twice)[3, 7].item() == 10
    assert little.release(other).sum().item() == 2 * 1024 * 512


def test_autograd_finds_what_it_saved_after_it_moved() -> None:
    def gradient(within: Memory) -> Tensor:
        torch.manual_seed(0)
        weight = torch.randn(512, 512, dtype=torch.float64, requires_grad=True)
        with WithinMemory(within):
            value = weight
            for _ in range(6):
                value = torch.sin(value) @ weight
            value.sum().backward()  # type: ignore[no-untyped-call]
        assert weight.grad is not None
        return within.release(weight.grad)

    plenty, little = Memory(limit=1 << 40), Memory(limit=LIMIT)
    assert torch.equal(gradient(little), gradient(plenty))
    assert plenty.moved == 0
    assert little.moved > 4 * LIMIT


def test_an_op_without_room_runs_once_more_after_all_else_moved() -> None:
    plenty = Memory(limit=1 << 40)
    with WithinMemory(plenty):
        waits = torch.ones(1024, 512) + 1
    calls = list[int]()

    def op() -> str:
        calls.append(waits.untyped_storage().nbytes())
        if len(calls) == 1:
            raise torch.OutOfMemoryError("no room")
        return "done"

    assert plenty.run(torch.ops.aten.add.Tensor, op) == "done"
    assert calls == [1024 * 512 * 4, 0]

    def writes_a_list() -> None:
        calls.append(0)
        raise torch.OutOfMemoryError("no room")

    calls.clear()
    with pytest.raises(torch.OutOfMemoryError):  # it may have written half of it
        plenty.run(torch.ops.aten._foreach_add_.List, writes_a_list)
    assert len(calls) == 1
