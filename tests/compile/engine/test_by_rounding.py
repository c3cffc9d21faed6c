"""Where there is no float64, eager's own rounding decides: no tolerance fails a right program, and an error fails."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.cli import exits
from idbg.cli.commands.diff import status
from idbg.cli.fail_on import Policy
from idbg.engine.kerneldiff import comparison
from idbg.engine.kerneldiff.sides.resampling import BY_EAGER, BY_NOTHING, Resampling
from idbg.engine.kerneldiff.sides.run import Side
from idbg.engine.kerneldiff.tensors import float64_device
from idbg.reports.baseline import NOTHING_KNOWN
from idbg.schema.diff import DiffReport, SideResult
from idbg.schema.remarks import NoFloat64
from idbg.views.diff import headline
from tests.harness.compared import run_with


class Bits(nn.Module):
    """A training step in bfloat16 that reads a tensor's bits, which float64 has not."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64)).bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.view(torch.int16).view(torch.bfloat16)).softmax(-1)


def compared(wrong: Callable[[Any], Any] | None, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> DiffReport:
    """The report on what Inductor makes of it, or on `wrong(model)`."""
    torch.manual_seed(0)
    model, x = Bits(), torch.randn(128, 64).bfloat16()
    if wrong is not None:
        monkeypatch.setattr(torch, "compile", lambda given, **_: wrong(given))
    return KernelDiff(model, (x,), backward=True, **settings).compare()


def tensors(report: DiffReport) -> list[Any]:
    return [*report.outputs, *report.gradients]


def failed(report: DiffReport) -> list[str]:
    return [diff.name for diff in tensors(report) if diff.failed]


def exit_status(report: DiffReport) -> int:
    return status(run_with(report), Policy(frozenset(), False, None, NOTHING_KNOWN, False))


def test_a_right_program_passes_that_is_beyond_the_tolerances(monkeypatch: pytest.MonkeyPatch) -> None:
    by_tolerance = compared(None, monkeypatch, mode="tolerance")
    assert by_tolerance.verdict == "failed"
    report = compared(None, monkeypatch)
    assert report.passed and report.mode == "rounding" and isinstance(report.float64_missing, NoFloat64)
    assert report.float64_missing.why == "failed" and "bits" in report.float64_missing.detail
    assert any(each.why_not == BY_EAGER for diff in tensors(report) for each in diff.criteria)
    assert "held against eager's own rounding (float64: " in headline(report)
    assert exit_status(report) == exits.DONE


def off_by(share: float) -> Callable[[Any], Any]:
    return lambda model: lambda x: model(x) * (1 + share)


def gradients_lost(model: Any) -> Any:
    def call(x: Tensor) -> Tensor:
        half = model.layers[0].weight
        half.register_hook(lambda found: torch.cat((found[:128], found[128:] * 0)))
        return model(x)

    return call


def without_a_layer(model: Any) -> Any:
    return lambda x: model.layers[2:](x.new_zeros(128, 256)).softmax(-1)


@pytest.mark.parametrize("wrong", [off_by(0.1), gradients_lost, without_a_layer, off_by(torch.nan)])
def test_an_error_fails_as_it_does_beside_float64(wrong: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    report = compared(wrong, monkeypatch)
    assert report.verdict == "failed" and exit_status(report) == exits.FAILED, report
    monkeypatch.setattr(Bits, "forward", lambda self, x: self.layers(x.detach()).softmax(-1))
    beside = compared(wrong, monkeypatch)
    assert beside.mode == "float64"
    assert failed(report) == failed(beside)


def test_what_cannot_be_measured_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resampling, "_run", lambda self, modes: tuple({} for _ in modes))
    report = compared(None, monkeypatch)
    assert (report.verdict, report.not_comparable) == ("waiting", BY_NOTHING)
    assert exit_status(report) == exits.UNDECIDED
    assert not failed(report) and report.first_wrong_stage is None
    wrong = compared(off_by(torch.nan), monkeypatch)
    assert wrong.verdict == "failed", "NaN on one side needs no measure"


def test_where_float64_takes_more_memory_than_there_is_rounding_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Side(SideResult("float64"), error=torch.OutOfMemoryError("out of memory"))
    monkeypatch.setattr(comparison, "run_float64", lambda *_, **__: full)
    monkeypatch.setattr(Bits, "forward", lambda self, x: self.layers(x).softmax(-1))
    report = compared(None, monkeypatch)
    assert report.passed and report.mode == "rounding"
    assert "out of memory" in headline(report)


def test_tolerances_of_the_users_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    report = compared(None, monkeypatch, tolerances={"out": (0.0, 0.0)})
    assert failed(report) == ["out"] and report.outputs[0].failed_by == ("tolerance",)


@pytest.mark.parametrize(("free", "moves"), [(4_000, True), (3_999, False)])
def test_float64_moves_to_a_cpu_that_has_four_times_the_peak_of_bfloat16(
    free: int, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(float64_device, "free_memory", lambda: free)
    monkeypatch.setattr(float64_device, "_lacking", lambda _: "")
    tensors = [torch.ones(2), torch.empty(2, device="meta", dtype=torch.bfloat16), torch.empty(2, dtype=torch.bfloat16)]
    with float64_device.float64_on("auto"):
        assert float64_device.move_to_cpu(tensors, 1_000) is moves
        assert float64_device.reason_moved(tensors[1].device) == ("meta has too little memory for it" if moves else "")
        assert not float64_device.move_to_cpu(tensors[:1], 0), "it is there"
    assert float64_device.reason_moved(tensors[1].device) == ""
