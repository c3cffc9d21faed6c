"""KernelDiff: what it compares and what it calls a failure, as the verdicts of the earlier tool have it."""

import json
from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from idbg import KernelDiff, quick_check
from idbg.reports.diff import to_json
from idbg.schema.remarks import Remark
from tests.harness.sides import Outputs, adding, only, plain, spoiled, wide

pytestmark = pytest.mark.usefixtures("seeded")


def test_verdict_22_the_same_tensors_pass() -> None:
    diff = only(KernelDiff(lambda x: x + 1, torch.ones(4), test=plain).compare())
    assert diff.passed and diff.max_abs == 0


def test_verdict_23_a_tenth_is_too_much() -> None:
    off = adding(0.1)
    report = KernelDiff(lambda x: x * 1, torch.ones(4, 4), test=off, atol=1e-3, rtol=1e-3).compare()
    assert (report.verdict, report.mode, only(report).failed_by) == ("failed", "tolerance", ("tolerance",))
    assert only(report).max_abs == pytest.approx(0.1, rel=1e-6)


def test_verdict_24_a_millionth_is_what_the_tolerance_says() -> None:
    off = adding(1e-6)
    for tolerance, passed in ((1e-7, False), (1e-5, True)):
        asked = KernelDiff(lambda x: x * 1, torch.ones(4), test=off, atol=tolerance, rtol=tolerance)
        assert asked.compare().passed is passed


def test_verdict_25_every_output_of_a_structure_is_there() -> None:
    def model(x: Tensor) -> dict[str, Any]:
        return {"main": x + 1, "extras": (x + 2, x + 3), "nested": {"a": x + 4, "b": x + 5}}

    report = KernelDiff(model, torch.ones(2), test=plain).compare()
    assert report.passed and len(report.outputs) == 5
    assert [diff.name for diff in report.outputs][-1] == 'out["nested"]["b"]'


def test_verdict_26_a_dict_of_inputs_goes_by_name() -> None:
    def model(x: Tensor, scale: Tensor) -> Tensor:
        return x * scale[:, None]

    inputs = {"x": torch.randn(2, 8), "scale": torch.randn(2)}
    assert KernelDiff(model, inputs, test=plain).compare().passed
    assert KernelDiff(lambda inputs: inputs["x"].sum(), inputs, test=plain).compare().passed


@pytest.mark.slow
def test_verdict_27_a_quick_check_is_true() -> None:
    assert quick_check(lambda x: x * 2, torch.randn(4)) is True


def test_verdict_32_empty_and_0d_outputs_pass() -> None:
    assert KernelDiff(lambda x: (x.sum(), x[:0]), torch.randn(4), test=plain).compare().passed


def test_verdict_36_nan_in_one_place_on_one_side_fails() -> None:
    def spoil(outputs: Outputs) -> None:
        outputs[0][3] = torch.nan

    diff = only(KernelDiff(wide, torch.randn(8), test=spoiled(spoil)).compare())
    assert "nan" in diff.failed_by and diff.nan is not None and diff.nan.disagree == 1
    assert KernelDiff(lambda x: x / x, torch.tensor([0.0, 1.0]), test=plain).compare().passed


def test_verdict_38_batch_norm_and_dropout_fail_nothing_and_change_nothing() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    x, before, generator = torch.randn(16, 8), model[1].running_mean.clone(), torch.get_rng_state()  # type: ignore[operator, union-attr]
    report = KernelDiff(model, x, test="aot_eager", backward=True, runs=2).compare()
    assert report.passed and report.mode == "float64", report
    assert torch.equal(model[1].running_mean, before) and torch.equal(torch.get_rng_state(), generator)  # type: ignore[arg-type]
    assert all(variance.deterministic for variance in report.variance)


def test_verdict_39_namedtuples_cycles_and_slashes() -> None:
    Batch = namedtuple("Batch", "x y")
    batch = Batch(torch.ones(2), torch.ones(2))
    assert KernelDiff(lambda batch: batch.x + batch.y, batch, test=plain).compare().passed
    assert KernelDiff(lambda x, y: x + y, batch, test=plain).compare().passed

    def cyclic(x: Tensor) -> dict[str, Any]:
        found: dict[str, Any] = {"a/b": x * torch.nan}
        found["self"] = found
        return found

    cyclic.__name__ = "models/cyclic"
    report = KernelDiff(cyclic, torch.ones(2), test=plain).compare()
    assert report.passed and [diff.name for diff in report.outputs] == ['out["a/b"]']
    assert Remark("repeated", 'out["self"]', "out") in report.notes
    json.loads(to_json(report), parse_constant=lambda constant: pytest.fail(constant))
