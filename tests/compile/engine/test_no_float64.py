"""Where a device has no float64, comparisons are as good as elsewhere: on the CPU, and told so."""

import json
import shutil
import subprocess
import sys
from math import isclose
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from idbg import KernelDiff
from idbg.config import settings
from idbg.engine.kerneldiff.float64 import transfer
from idbg.engine.kerneldiff.tensors import float64_device
from idbg.schema.diff import Float64Elsewhere, KernelError, TransferFloor
from idbg.schema.errors import BadInput, SettingsError
from idbg.views.float64_device import sentences

ROOT = Path(__file__).resolve().parents[3]
Reports = dict[str, Any]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What comparisons said on a device without float64, in a process of its own: torch cannot forget a device."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    command = [sys.executable, "-m", "tests.harness.no_float64.compared", str(tmp_path_factory.getbasetemp().parent)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    reports: Reports = json.loads(done.stdout.splitlines()[-1])
    return reports


@pytest.mark.slow
def test_outputs_and_gradients_are_held_against_float64_on_the_cpu(there: Reports) -> None:
    here, report = there["here"], there["there"]
    assert here["float64_elsewhere"] is None
    assert report["verdict"] == "passed" and report["mode"] == "float64" and not report["float64"]
    assert len(report["gradients"]) == len(here["gradients"]) == 7
    assert report["state"] == ["npu:0", "torch.float32"], "the model is where it was"
    for ours, theirs in zip(here["outputs"] + here["gradients"], report["outputs"] + report["gradients"], strict=True):
        assert isclose(ours["baseline"]["eager_rmse"], theirs["baseline"]["eager_rmse"], rel_tol=0.3), ours["name"]


@pytest.mark.slow
def test_it_is_told_first_and_so_is_what_the_way_there_changes(there: Reports) -> None:
    told = there["there"]["float64_elsewhere"]
    assert told["device"] == "npu:0" and "npu has none: this device has no float64" in told["why"]
    assert {each["dtype"]: each["changed"] for each in told["floors"]} == {"float32": 0, "int64": 0}
    lines = there["there"]["summary"].splitlines()
    assert lines[1].startswith("float64 is computed on the CPU and not on npu:0: npu has none")
    assert "back, values are the same bit for bit" in lines[2]


@pytest.mark.slow
def test_a_device_that_flushes_subnormals_has_a_floor(there: Reports) -> None:
    (changed,) = [each for each in there["flushed"]["float64_elsewhere"]["floors"] if each["changed"]]
    assert changed["dtype"] == "float32" and changed["subnormals"] > 100 and changed["max_rel"] == 0
    assert "are changed" in there["flushed"]["summary"]


@pytest.mark.slow
def test_the_same_numbers_are_drawn_as_on_the_device(there: Reports) -> None:
    report = there["drawn"]
    assert report["verdict"] == "passed" and report["mode"] == "float64", report["summary"]
    in_float64, in_eager = there["draws"]
    assert in_float64 == in_eager and [each.partition(" ")[0] for each in in_eager] == ["rand", "native_dropout"]
    assert all(each["baseline"]["eager_rmse"] < 1e-4 for each in report["outputs"] + report["gradients"])


@pytest.mark.slow
def test_a_wrong_column_fails_as_elsewhere(there: Reports) -> None:
    (out,) = there["lost"]["outputs"]
    assert there["lost"]["verdict"] == "failed" and "column" in out["failed_by"]
    assert out["blocks"][1]["columns"] == [7, 8]


@pytest.mark.slow
@pytest.mark.parametrize("case", ["by tolerance", "true", "twice"])
def test_what_else_reads_in_float64_does_so_on_the_cpu(there: Reports, case: str) -> None:
    assert there[case]["verdict"] == "passed", there[case]["summary"]


def test_a_device_is_asked_whether_it_computes_in_float64() -> None:
    assert not float64_device._lacking(torch.device("cpu"))
    assert float64_device._lacking(torch.device("meta"))
    float64_device._lacking.cache_clear()
    with FakeTensorMode():  # the answer is kept: none of a tensor that is not real
        assert not float64_device._lacking(torch.device("cpu"))
    assert float64_device.float64_device(torch.device("cpu")).type == "cpu"


def test_the_program_may_be_told_to_compute_float64_on_the_cpu() -> None:
    torch.manual_seed(0)
    report = KernelDiff(nn.Linear(8, 4), torch.randn(3, 8), test="eager", float64="cpu").compare()
    assert report.passed and report.mode == "float64"
    assert report.float64_elsewhere is None, "it is on the CPU anyway"
    with pytest.raises(BadInput, match="cannot be computed on 'gpu'"):
        KernelDiff(nn.Linear(8, 4), torch.randn(3, 8), float64="gpu").compare()  # type: ignore[arg-type]


def test_it_is_a_setting() -> None:
    assert settings.load({}).float64 == "auto"
    assert settings.load({"IDBG_FLOAT64": "cpu"}).float64 == "cpu"
    with pytest.raises(SettingsError, match="IDBG_FLOAT64 is 'gpu'"):
        settings.load({"IDBG_FLOAT64": "gpu"})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool], ids=str)
def test_probes_hold_what_is_seldom_met(dtype: torch.dtype) -> None:
    values = transfer.probes(dtype)
    assert values.dtype == dtype
    if dtype.is_floating_point:
        size = values.abs()
        assert values.isnan().any() and values.isinf().any() and (values == 0).any()
        assert ((size > 0) & (size < torch.finfo(dtype).tiny)).any()


def test_what_changed_on_the_way_is_counted() -> None:
    sent = torch.tensor([1.0, 2.0, 1e-40, float("nan"), 3.0])
    back = torch.tensor([1.0, 2.5, 0.0, float("nan"), float("inf")])
    back.view(torch.int32)[3] += 1
    found = transfer._added(TransferFloor(device="npu", dtype="float32", values=0), sent, back)
    assert (found.values, found.changed, found.subnormals, found.nans) == (5, 4, 1, 1)
    assert found.max_rel == float("inf")
    told = list(sentences(Float64Elsewhere(device="npu", why="npu has none", floors=(found,))))
    assert told[-1] == (
        "sent to npu and back, 4 of 5 values of float32 are changed: "
        "1 subnormal; 1 NaN with another payload; normal numbers that are none any more"
    )


gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 32)

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.dropout(nn.functional.gelu(self.norm(self.first(x))), 0.3)
        out: Tensor = self.last(hidden + torch.rand(64, device=x.device).to(x.dtype))
        return out


def errors(kernel: KernelError) -> dict[str, float]:
    """Of each output: which of equally wrong ones is the worst is chance. So is all beyond 1: sums that cancel."""
    known = (each for each in kernel.outputs if each.error is not None)
    return {f"{each.buffer}: {each.node}": min(each.error, 1.0) for each in known if each.error is not None}


@pytest.mark.gpu
@gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_on_a_gpu_both_ways_say_the_same(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layers, x = Layers().to("cuda", dtype), torch.randn(128, 64, device="cuda", dtype=dtype)
    there = KernelDiff(layers, x, backward=True, per_kernel=True).compare()
    here = KernelDiff(layers, x, backward=True, per_kernel=True, float64="cpu").compare()
    assert there.float64_elsewhere is None and there.mode == here.mode == "float64", here.float64_missing
    assert here.float64_elsewhere is not None and here.float64_elsewhere.why == float64_device.ASKED_FOR
    assert not any(each.changed for each in here.float64_elsewhere.floors)
    assert there.verdict == here.verdict == "passed"
    for one, other in zip((*there.outputs, *there.gradients), (*here.outputs, *here.gradients), strict=True):
        assert one.name == other.name and one.passed == other.passed
        assert one.baseline is not None and other.baseline is not None
        assert isclose(one.baseline.rmse, other.baseline.rmse, rel_tol=1e-3, abs_tol=1e-12), one.name
        assert isclose(one.baseline.reference_rmse, other.baseline.reference_rmse, rel_tol=1e-3, abs_tol=1e-12)
    assert [each.observed for each in there.kernels] == [each.observed for each in here.kernels]
    for kernel, again in zip(there.kernels, here.kernels, strict=True):
        assert errors(kernel) == pytest.approx(errors(again), rel=1e-2, abs=1e-9), kernel.name
    assert next(layers.parameters()).device.type == "cuda"
