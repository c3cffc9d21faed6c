"""KernelDiff: which sides it runs, and what it says where one fails or float64 has no say."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from idbg import KernelDiff
from idbg.engine.backends import backend
from idbg.format.verdicts import verdict_words
from idbg.schema.errors import BadInput
from idbg.schema.programs import Program, Target
from idbg.schema.remarks import NoFloat64, Remark
from idbg.schema.runs import Run
from idbg.views import remarks
from idbg.views.blame import blame_sentence
from idbg.views.diagnostics import diagnostics
from idbg.views.diff import headline
from idbg.views.remarks import no_float64, sentence, tensor_note
from tests.harness.sides import Outputs, adding, only, plain, spoiled, wide
from tests.harness.traced import is_traced

pytestmark = pytest.mark.usefixtures("seeded")


def test_without_a_float64_side_the_tolerances_decide_and_the_report_says_why() -> None:
    report = KernelDiff(lambda x: x.view(torch.int32) + x.int(), torch.randn(4), test=plain).compare()
    assert report.passed and report.mode == "tolerance" and "bits" in no_float64(report.float64_missing)
    double = KernelDiff(wide, torch.randn(4).double(), test=plain).compare()
    assert double.passed and double.float64_missing == NoFloat64("not narrow")


def test_random_numbers_that_float64_does_not_draw_are_noticed() -> None:
    def model(x: Tensor) -> Tensor:
        if x.detach().numpy().itemsize == 8:  # the tensor itself says the program's dtype
            torch.rand(7)
        return x + torch.rand(64)

    report = KernelDiff(model, torch.zeros(64), test=plain).compare()
    assert report.passed and report.mode == "tolerance" and report.float64_missing == NoFloat64("draws")


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


@pytest.mark.parametrize(
    ("given", "reference", "accused"),
    [(torch.float32, "eager", "Dynamo"), (torch.float32, "fp64", ""), (torch.float64, "eager", "Dynamo")],
)
def test_what_differs_by_a_tolerance_with_nothing_compiled_accuses_dynamo_where_nothing_rounds_so_far(
    given: torch.dtype, reference: str, accused: str
) -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 + 0.1 if is_traced() else x * 2

    report = KernelDiff(model, torch.randn(8, dtype=given), reference=reference, test=plain, per_kernel=True).compare()
    stage = report.first_wrong_stage
    assert report.verdict == "failed" and ("Dynamo" in blame_sentence(report)) is bool(accused)
    maker = stage.made_by.name if stage is not None and stage.made_by is not None else ""
    assert maker.startswith(accused) and bool(maker) is bool(accused)
    assert ("maybe uncompiled" in {note.kind for note in report.notes if isinstance(note, Remark)}) is not bool(accused)


# Sides


def test_a_side_that_fails_is_told_and_the_other_is_kept() -> None:
    def broken(gm: GraphModule, inputs: Outputs) -> Callable[..., Any]:
        raise RuntimeError("no kernel for this")

    report = KernelDiff(wide, torch.ones(4), test=broken).compare()
    eager, test, float64 = report.sides
    assert report.verdict == "error" and eager.failure is None and test.name == "broken" and float64.failure is None
    assert test.failure is not None and "no kernel for this" in test.failure.message
    assert only(report).reference is not None and tensor_note(only(report)) == "not compared: broken failed"

    def only_compiled(x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            raise RuntimeError("not in eager")
        return x + 1

    report = KernelDiff(only_compiled, torch.ones(4), test=plain).compare()
    assert report.verdict == "error" and only(report).test is not None
    assert report.sides[0].failure is not None and report.sides[0].failure.kind == "user"


def test_whoever_listens_hears_of_each_side_as_it_ends() -> None:
    heard: list[Any] = []
    report = KernelDiff(wide, torch.ones(4), test=plain, on_result=heard.append).compare()
    assert [len(told.sides) for told in heard] == [1, 2, 2, 3] and heard[-1] == report
    assert [told.verdict for told in heard] == ["waiting", "waiting", "waiting", "passed"]
    assert heard[2].mode == "tolerance" and heard[2].outputs and heard[2].float64_missing == NoFloat64("waiting")
    assert heard[0].summary() and heard[0].to_json()


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
    assert any("received no graph" in sentence(note) for note in report.notes)
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
    assert report.notes == (Remark("no kernels", "plain"),)


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
    assert "bisected" in remarks.sentence(found.reason)


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
    with pytest.raises(BadInput, match="a model was passed"):
        KernelDiff(wide, torch.ones(2), test=nn.Linear(2, 2)).compare()


def bce(p: Tensor, target: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy(p, target)


@pytest.mark.slow
def test_a_check_of_eagers_that_the_compiled_program_lost_names_the_stage_and_the_decomposition() -> None:
    """pytorch/pytorch#193757: the compiled program accepts targets out of range."""
    report = KernelDiff(bce, (torch.full((4, 4), 0.5), torch.full((4, 4), 1.5)), per_kernel=True).compare()
    assert report.verdict == "error" and report.raises_alone is report.sides[0]
    assert headline(report).startswith("✘ eager raises, inductor returns a value")
    assert "fix it" not in report.sides[0].failure.hint and "returns a value" in report.sides[0].failure.hint
    stage = report.first_wrong_stage
    assert (stage.stage, stage.node, stage.file) == ("joint", "binary_cross_entropy", __file__)
    assert stage.made_by.name == "aten.binary_cross_entropy.default"
    words = "a check of eager's is lost since joint: `binary_cross_entropy` ("
    assert blame_sentence(report).startswith(words) and "made by the decomposition of aten." in blame_sentence(report)
    assert [row.judged for row in report.stages] == [True] * 7, "the stages below were run"
    run = Run(1, Program("m.py"), Target(), 0.0, diff=report, ended="failed")
    assert verdict_words(run) == "eager raises, inductor returns a value"
    (found,) = [each for each in diagnostics(run) if each.rule == "raises"]
    assert found.message.startswith("eager raises, inductor returns a value; all elements of target should be between")
    assert words in found.message


def test_that_only_the_compiled_program_raises_is_the_same_kind_of_failure() -> None:
    def refusing(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        def call(*args: Tensor) -> Any:
            raise ValueError("no such row")

        return call

    def broken(gm: GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        raise ValueError("no such op")

    report = KernelDiff(torch.sin, torch.ones(3), test=refusing).compare()
    assert report.raises_alone is report.sides[1]
    assert headline(report).startswith("✘ refusing raises, eager returns a value   refusing against eager")
    report = KernelDiff(torch.sin, torch.ones(3), test=broken).compare()
    assert report.raises_alone is None and headline(report).startswith("✘ not compared"), "it did not compile"

    def no(x: Tensor) -> Tensor:
        raise ValueError("no")

    report = KernelDiff(no, torch.ones(3), test="eager").compare()
    assert report.raises_alone is None and headline(report).startswith("✘ not compared"), "both raise"
