"""KernelDiff: what it compares, what it calls a failure, and by which rule."""

import json
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from idbg.engine.backends import backend
from idbg.engine.kerneldiff.api import KernelDiff, quick_check
from idbg.reports.diff import to_json
from idbg.schema.diff import DiffReport, TensorDiff
from idbg.schema.errors import BadInput

Outputs = list[Tensor]
Spoil = Callable[[Outputs], Any]


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def spoiled(spoil: Spoil) -> Callable[..., Any]:
    """A backend that computes what it is given, then does this to the outputs."""

    def compiler(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        def run(*args: Tensor) -> Any:
            outputs = [value.clone() for value in gm(*args)]
            return tuple(spoil(outputs) or outputs)

        return run

    return compiler


def adding(amount: float) -> Callable[..., Any]:
    return spoiled(lambda outputs: [outputs[0] + amount, *outputs[1:]])


def plain(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
    return gm.forward


def only(report: DiffReport) -> TensorDiff:
    (diff,) = report.outputs
    return diff


def wide(x: Tensor) -> Tensor:
    return (x * 2).sin()


# The verdicts of the earlier tool


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
    assert 'out["self"] is out again: it is compared once' in report.notes
    json.loads(to_json(report), parse_constant=lambda constant: pytest.fail(constant))


# Planted faults


def zero_last_column(outputs: Outputs) -> None:
    outputs[0][:, -1] = 0


def flip_one(outputs: Outputs) -> None:
    outputs[0][7, 9] *= -1


def shift_one_slightly(outputs: Outputs) -> None:
    outputs[0][7, 9] += 1e-3 * outputs[0].abs().max()


def add_infinity(outputs: Outputs) -> None:
    outputs[0][0, 0] = torch.inf


def drop_the_tail(outputs: Outputs) -> None:
    outputs[0][-1, 48:] = 0


def wrong_tile(outputs: Outputs) -> None:
    outputs[0][16:32, 16:32] *= 1.001


def shorten(outputs: Outputs) -> Outputs:
    return [outputs[0][:-1], outputs[1]]


def narrow(outputs: Outputs) -> Outputs:
    return [outputs[0].bfloat16(), outputs[1]]


def swap(outputs: Outputs) -> Outputs:
    return outputs[::-1]


FAULTS: dict[Spoil, str] = {
    zero_last_column: "column",
    flip_one: "maximum",
    shift_one_slightly: "maximum",
    add_infinity: "inf",
    drop_the_tail: "row",
    wrong_tile: "tile",
    shorten: "shape",
    narrow: "dtype",
    swap: "rmse",
}


@pytest.mark.parametrize("spoil", FAULTS, ids=lambda spoil: spoil.__name__)
def test_a_planted_fault_is_caught_by_its_rule(spoil: Spoil) -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x @ x.t()).sin(), (x @ x.t()).cos()

    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    report = KernelDiff(model, x, test=spoiled(spoil)).compare()
    assert report.verdict == "failed" and report.mode == "float64"
    first, second = report.outputs
    assert FAULTS[spoil] in first.failed_by, first.failed_by
    assert second.passed or spoil is swap


def test_a_test_as_wrong_as_eager_passes_and_one_ten_times_worse_fails() -> None:
    x = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).bfloat16()

    def noisy(size: float) -> Spoil:
        noise = torch.randn(256, 256, generator=torch.Generator().manual_seed(1))
        return lambda outputs: [(outputs[0].float() * (1 + size * noise)).bfloat16()]

    eps = torch.finfo(torch.bfloat16).eps
    assert KernelDiff(wide, x, test=spoiled(noisy(eps / 4))).compare().passed
    assert "rmse" in only(KernelDiff(wide, x, test=spoiled(noisy(10 * eps))).compare()).failed_by
    assert KernelDiff(wide, x, test=spoiled(noisy(10 * eps)), k=1000).compare().passed


def test_a_wrong_gradient_is_caught_by_name() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Tensor:
            return gradients[0] * (1.001 if torch.compiler.is_compiling() else 1)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(Doubled.apply(self.first(x)))  # type: ignore[no-any-return, no-untyped-call]

    report = KernelDiff(Model(), torch.randn(4, 8), test="aot_eager", loss=lambda out: out.square().mean()).compare()
    failed = {diff.name for diff in report.gradients if not diff.passed}
    assert failed == {"grad(first.weight)", "grad(first.bias)"}
    assert {diff.name for diff in report.outputs} == {"out", "loss"} and all(diff.passed for diff in report.outputs)


def test_a_buffer_that_the_test_leaves_alone_is_caught() -> None:
    def forgetful(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        def run(*args: Tensor) -> Any:
            before = [arg.detach().clone() for arg in args]
            outputs = gm(*args)
            with torch.no_grad():
                for arg, value in zip(args, before, strict=True):
                    arg.copy_(value)
            return outputs

        return run

    report = KernelDiff(nn.BatchNorm1d(4), torch.randn(8, 4), test=forgetful).compare()
    failed = {diff.name: diff.failed_by for diff in report.outputs if not diff.passed}
    assert {"running_mean (after)", "running_var (after)", "num_batches_tracked (after)"} == set(failed)
    assert failed["num_batches_tracked (after)"] == ("exact",)


# float64, or why not


def test_without_a_float64_side_the_tolerances_decide_and_the_report_says_why() -> None:
    report = KernelDiff(lambda x: x.view(torch.int32) + x.int(), torch.randn(4), test=plain).compare()
    assert report.passed and report.mode == "tolerance" and "bits" in report.float64_missing
    double = KernelDiff(wide, torch.randn(4).double(), test=plain).compare()
    assert double.passed and double.float64_missing == "not run: the program has no floating numbers below float64"


def test_random_numbers_that_float64_does_not_draw_are_noticed() -> None:
    def model(x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            torch.rand(7)
        return x + torch.rand(64)

    report = KernelDiff(model, torch.zeros(64), test=plain).compare()
    assert report.passed and report.mode == "tolerance" and "random numbers" in report.float64_missing


def test_float64_itself_may_be_the_reference() -> None:
    x = torch.randn(64, 64)
    report = KernelDiff(lambda x: x @ x, x, reference="fp64", test=plain).compare()
    assert report.mode == "tolerance" and not report.float64_missing
    assert [side.name for side in report.sides] == ["float64", "plain"]
    assert only(report).max_abs == float((x @ x - (x.double() @ x.double()).float()).abs().max())


def test_an_output_is_held_to_its_own_tolerances() -> None:
    off = adding(0.1)
    asked = KernelDiff(lambda x: (x * 1, x * 2), torch.ones(4), test=off, tolerances={"out[0]": (0.2, 0.0)})
    report = asked.compare()
    assert report.passed and report.mode == "float64" and report.outputs[0].baseline is None
    with pytest.raises(BadInput, match="'out\\[7\\]'"):
        KernelDiff(wide, torch.ones(4), test=plain, tolerances={"out[7]": (0.1, 0.1)}).compare()


# Sides


def test_a_side_that_fails_is_told_and_the_other_is_kept() -> None:
    def broken(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        raise RuntimeError("no kernel for this")

    report = KernelDiff(wide, torch.ones(4), test=broken).compare()
    eager, test, float64 = report.sides
    assert report.verdict == "error" and eager.failure is None and test.name == "broken" and float64.failure is None
    assert test.failure is not None and "no kernel for this" in test.failure.message
    assert only(report).reference is not None and only(report).note == "not compared: broken failed"

    def only_compiled(x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            raise RuntimeError("not in eager")
        return x + 1

    report = KernelDiff(only_compiled, torch.ones(4), test=plain).compare()
    assert report.verdict == "error" and only(report).test is not None
    assert report.sides[0].failure is not None and report.sides[0].failure.kind == "user"


def test_whoever_listens_hears_of_each_side_as_it_ends() -> None:
    heard: list[DiffReport] = []
    report = KernelDiff(wide, torch.ones(4), test=plain, on_result=heard.append).compare()
    assert [len(told.sides) for told in heard] == [1, 2, 2, 3] and heard[-1] == report
    assert [told.verdict for told in heard] == ["waiting", "waiting", "waiting", "passed"]
    assert heard[2].mode == "tolerance" and heard[2].outputs and heard[2].float64_missing == "not run yet"


def test_any_backend_may_stand_on_either_side() -> None:
    for test in ("eager", "aot_eager", "mock"):
        assert KernelDiff(wide, torch.ones(4), test=test).compare().passed
    report = KernelDiff(wide, torch.randn(4), reference="aot_eager", test="mock").compare()
    assert report.passed and (report.reference, report.test) == ("aot_eager", "mock")
    with pytest.raises(BadInput, match="no backend 'inductr'"):
        KernelDiff(wide, torch.ones(4), test="inductr").compare()


def test_the_mock_numerics_of_an_accelerator_show_as_errors(tmp_path: Any) -> None:
    rules = tmp_path / "low.toml"
    rules.write_text('name = "low"\n[numerics]\ncompute = "bfloat16"\naccumulate = "float32"\n')
    target = backend("mock", accelerator=rules, strict=False)
    report = KernelDiff(nn.Linear(64, 64), torch.randn(8, 64), test=target).compare()
    assert report.verdict == "failed" and "rmse" in only(report).failed_by and report.test == "mock"


def test_where_nothing_is_compiled_the_report_says_so() -> None:
    @torch.compiler.disable
    def hidden(x: Tensor) -> Tensor:
        return x + 1

    report = KernelDiff(lambda x: hidden(x), torch.ones(2), test=plain).compare()
    assert any("was given no graph" in note for note in report.notes)
    assert report.verdict == "empty" and "nothing was compiled" in report.summary().partition("\n")[0]


def test_runs_that_differ_are_reported() -> None:
    count = iter(range(9))
    report = KernelDiff(
        wide, torch.zeros(4), test=spoiled(lambda outputs: [outputs[0] + next(count)]), runs=3
    ).compare()
    (variance,) = report.variance
    assert (variance.name, variance.runs, variance.differing, variance.max_abs) == ("out", 3, 4, 2.0)


@pytest.mark.slow
def test_kernels_are_observed_on_request_and_the_state_is_kept() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.BatchNorm1d(8))
    report = KernelDiff(model, torch.randn(4, 8), per_kernel=True, backward=True).compare()
    assert report.passed and report.kernels and report.first_bad_kernel is None and not report.notes
    assert {kernel.part for kernel in report.kernels} == {"forward", "backward"}
    assert all(kernel.observed or kernel.reason for kernel in report.kernels)
    assert not model[2].running_mean.any()  # type: ignore[union-attr, operator]
    report = KernelDiff(wide, torch.ones(2), test=plain, per_kernel=True).compare()
    assert report.notes == ("plain has no kernels that can be observed",)


def test_the_first_bad_node_of_a_backend_without_kernels_is_bisected(tmp_path: Any) -> None:
    rules = tmp_path / "low.toml"
    rules.write_text('name = "low"\n[numerics]\ncompute = "bfloat16"\naccumulate = "float32"\n')
    target = backend("mock", accelerator=rules, strict=False)

    def model(x: Tensor, w: Tensor) -> Tensor:
        turned = x.t()  # changes no number
        return (turned @ w).relu()

    report = KernelDiff(model, (torch.randn(8, 8), torch.randn(8, 8)), test=target, per_kernel=True).compare()
    (found,) = report.kernels
    assert report.first_bad_kernel == 0 and found.bad and found.graph is not None
    assert (found.graph.stage, found.file) == ("dynamo", __file__)
    assert "matmul" in found.node and (found.error or 0) > 1e-4 > (found.input_error or 0)
    assert "bisected" in found.reason


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"k": 0.5}, "k is 0.5"),
        ({"k": torch.nan}, "k is nan"),
        ({"k": torch.inf}, "k is inf"),
        ({"atol": -1e-3}, "atol is -0.001"),
        ({"rtol": torch.nan}, "rtol is nan"),
        ({"tolerances": {"out": (0.1, torch.nan)}}, "the rtol of out is nan"),
        ({"tolerances": {"out": 0.1}}, "the tolerances of out are 0.1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_before_anything_runs(options: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        KernelDiff(lambda x: pytest.fail("it ran"), torch.ones(2), test=plain, **options).compare()


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="0 times"):
        KernelDiff(wide, torch.ones(2), runs=0).compare()
    with pytest.raises(BadInput, match="no mode"):
        KernelDiff(wide, torch.ones(2), mode="fp64").compare()  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="cannot be the test side"):
        KernelDiff(wide, torch.ones(2), test="float64").compare()
    with pytest.raises(BadInput, match="a model was given"):
        KernelDiff(wide, torch.ones(2), test=nn.Linear(2, 2)).compare()
