"""A program that gives something else each time cannot be compared, and what only rounds otherwise can."""

import time

import torch
from torch import Tensor, nn

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.resampling import is_worth_repeating, judge_repeated
from idbg.engine.kerneldiff.tensors.compare import compare_tensors
from idbg.schema.diff import TensorDiff
from idbg.views.blame import blame_sentence, stage_cells
from idbg.views.remarks import tensor_note


def test_a_program_that_reads_a_clock_does_not_pass() -> None:
    @torch.compiler.disable
    def now(x: Tensor) -> Tensor:
        return x + time.perf_counter() % 1000

    report = KernelDiff(lambda x: now(x) * 2, torch.zeros(4)).compare()
    assert report.verdict == "failed" and report.outputs[0].failed_by == ("unsteady",)
    assert "eager itself gives something else each time" in tensor_note(report.outputs[0])


def test_of_an_op_with_hidden_state_nothing_is_accused() -> None:
    calls = [0]

    @torch.library.custom_op("nondeterminism::warm", mutates_args=())
    def warm(x: Tensor) -> Tensor:
        calls[0] += 1
        return x * (1 + 0.1 * calls[0])

    @warm.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    report = KernelDiff(lambda x: warm(x @ x).relu(), torch.randn(6, 6), per_kernel=True).compare()
    assert report.verdict == "failed" and report.outputs[0].failed_by == ("unsteady",)
    assert report.first_bad_kernel is None and not any(stage.bad for stage in report.stages)
    assert blame_sentence(report) == "" and not any(cells.made_by for cells in stage_cells(report))


def test_what_rounds_otherwise_is_not_called_unsteady() -> None:
    first = torch.randn(1000)
    test = first + 1e-3
    diff = compare_tensors(first, test, name="out")
    assert is_worth_repeating([diff]) and not is_worth_repeating([compare_tensors(first, first, name="out")])
    for again, unsteady in ((first, False), (first * (1 + 1e-6), False), (first + 1e-2, True), (first[1:], True)):
        found = judge_repeated(diff, first, again)
        assert ("unsteady" in found.failed_by) is unsteady


def test_eager_runs_again_only_where_it_could_change_the_verdict() -> None:
    sides: list[str] = []
    KernelDiff(nn.ReLU(), torch.randn(4), on_side=sides.append).compare()
    assert sides == ["eager", "inductor", "float64"]

    def wrong(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        return lambda *args: tuple(each + 1 for each in gm(*args))

    sides.clear()
    found: TensorDiff = KernelDiff(nn.ReLU(), torch.randn(4), test=wrong, on_side=sides.append).compare().outputs[0]
    assert "eager again" in sides and found.failed_by and "unsteady" not in found.failed_by


def test_a_parameter_that_is_written_by_its_data_is_state_on_every_side() -> None:
    model = nn.Linear(4, 4)

    def step(x: Tensor) -> Tensor:
        model.weight.data.mul_(0.5)
        return model(x)  # type: ignore[no-any-return]

    before = model.weight.detach().clone()
    report = KernelDiff(step, torch.randn(2, 4)).compare()
    assert report.passed, report.summary()
    assert any(diff.name.endswith("weight (after)") for diff in report.outputs)
    assert torch.equal(model.weight, before)
