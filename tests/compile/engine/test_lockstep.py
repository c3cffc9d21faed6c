"""Sides that train the same objects in turn: each goes on from where it stood, and the rule by which they part."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.steps.restore_point import RestorePoint
from idbg.engine.kerneldiff.steps.run import Compiler, trained
from idbg.engine.kerneldiff.steps.training import Rows, TensorRow, Training
from idbg.engine.kerneldiff.steps.verdict import StepJudge, first, shown_distances, unjudged_from
from idbg.engine.kerneldiff.tensors.compare import TensorDistance
from idbg.engine.program.load import Workload
from idbg.schema.steps import Kind, StepDistance, TrainingSteps
from idbg.views.steps import sentence
from tests.harness import trainings

JUDGE = StepJudge("test", "eager", "moved", k=3.0)


def alone(workload: Workload, count: int) -> dict[str, torch.Tensor]:
    """What so many steps of plain Python come to, and the state as it was put back."""
    subject = Subject(workload)
    with subject.restored():
        for _ in range(count):
            workload.model(*workload.args)
        return {name: each.detach().clone() for name, each in subject.parameters.items()}


@pytest.mark.parametrize("settings", [{"kind": "adamw"}, {"decays": True}, {"every": 2}, {"scale": 8.0}])
def test_a_side_that_waits_for_others_goes_on_from_where_it_stood(settings: dict[str, object]) -> None:
    workload = trainings.training(**settings)  # type: ignore[arg-type]
    wanted = alone(workload, 4)
    subject = Subject(workload)
    with subject.restored():
        training = Training(subject, backward=False)
        sides = [training.eager(), training.float64(), training.eager()]
        for rows in training.steps(4, sides[1], [sides[0], sides[2]]):
            assert rows
        with sides[2].restore_point.active():
            come_to = {name: each.detach().clone() for name, each in subject.parameters.items()}
    assert all(torch.equal(come_to[name], each) for name, each in wanted.items())


def test_a_step_of_both_sides_sees_its_own_gradients_counters_and_random_numbers() -> None:
    model, seen = nn.Linear(2, 2), []
    calls = 0

    def step(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        model(x * torch.rand(())).sum().backward()
        seen.append((calls, round(float(model.weight.grad.sum()), 6)))
        return model.weight.sum()

    subject = Subject(Workload(step, (torch.ones(2),), grad=True))
    with subject.restored():
        points = RestorePoint(subject), RestorePoint(subject)
        told: list[list[tuple[int, float]]] = [[], []]
        for _ in range(3):
            for point, own in zip(points, told, strict=True):
                with point.active():
                    step(*subject.args)  # type: ignore[arg-type]
                    own.append(seen[-1])
    assert told[0] == told[1] and [each[0] for each in told[0]] == [1, 2, 3]
    assert calls == 0 and model.weight.grad is None and seen == []


def test_float64_keeps_its_digits_from_step_to_step() -> None:
    subject = Subject(trainings.training("sgd"))
    with subject.restored():
        training = Training(subject, backward=False)
        true = training.float64()
        for _ in training.steps(2, true, []):
            pass
        weights = list(subject.parameters.values())
        assert all(each.dtype == torch.float32 for each in weights)
        with true.restore_point.active():
            assert all(each.dtype == torch.float64 for each in weights)
            assert any(not torch.equal(each.float().double(), each.data) for each in weights)


def test_a_scaler_that_skips_a_step_in_eager_skips_it_in_float64() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(x) * 1e10).square().mean()
        scaler.scale(loss).backward()  # infinite in float32, until the scale has come down
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    subject = Subject(Workload(step, (torch.randn(3, 4),), grad=True))
    with subject.restored():
        training = Training(subject, backward=False)
        truth, eager = training.float64(), training.eager()
        rows = list(training.steps(3, truth, [eager]))
    assert all(each["scaler._scale"].far["eager"].relative == 0 for each in rows)
    assert all(each["model.weight"].far["eager"].relative < 1e-5 for each in rows)


def rows_of(kind: Kind = "parameter", **far: float) -> Rows:
    row = TensorRow(kind, torch.float32, 4096)
    row.far = {side: TensorDistance(error, 1.0) for side, error in far.items()}
    return {"weight": row}


def failed(rows: Rows, amplified: float | None = None, judge: StepJudge = JUDGE) -> bool | None:
    """None where nothing is said."""
    told = judge.judged(1, rows, amplified)[0]
    return None if told.allowed is None else told.failed


def test_the_test_may_be_three_times_as_far_as_the_worst_of_the_others() -> None:
    assert failed(rows_of(test=2.9e-4, eager=1e-4, moved=1e-9)) is False
    assert failed(rows_of(test=3.2e-4, eager=1e-4, moved=1e-9)) is True
    assert failed(rows_of(test=2.9e-4, eager=1e-9, moved=1e-4)) is False


def test_what_is_unstable_is_allowed_what_one_direction_may_differ_by() -> None:
    far = rows_of(test=1e-3, eager=1e-4, moved=1e-4)
    assert failed(far, amplified=5.0) is True and failed(far, amplified=500.0) is False


def test_nothing_is_said_where_the_reference_is_lost_itself() -> None:
    assert failed(rows_of(test=5.0, eager=0.8, moved=0.0)) is None
    overflown = rows_of(test=1e-7, eager=1e-7, moved=1e-7)
    overflown["weight"].far["eager"] = TensorDistance(1.0, 1e30)
    assert failed(overflown) is None
    assert failed({"weight": TensorRow("parameter", torch.float32, 1, {"test": TensorDistance(0.0, 1.0)})}) is None


def test_nan_and_what_is_not_there_fail() -> None:
    rows = rows_of(test=1e-7, eager=1e-7, moved=1e-7)
    rows["weight"].far["test"] = TensorDistance(1e-7, 1.0, differing=1)
    assert failed(rows) is True
    del rows["weight"].far["test"]
    assert failed(rows) is True


def test_a_counter_that_does_not_count_is_lost_however_large_it_is() -> None:
    rows = rows_of("buffer", test=1e-7, eager=0.0, moved=0.0)
    rows["weight"].count = 1
    assert failed(rows) is False
    rows["weight"].unmoved = {"test"}
    assert failed(rows) is True


def distance(kind: Kind, name: str, *, test: float = 1e-3, bad: bool = True, step: int = 1) -> StepDistance:
    return StepDistance(
        step=step, tensor=name, kind=kind, test=test, reference=1e-7, sensitivity=1e-8, allowed=1e-6, failed=bad
    )


def test_the_first_that_a_step_makes_is_named() -> None:
    loss, fine = distance("output", "loss"), distance("output", "loss", bad=False)
    early, late = distance("gradient", "grad(a)", test=1.0), distance("gradient", "grad(b)")
    moment, weight = distance("moment", "exp_avg(a)"), distance("parameter", "a")
    assert first([loss, early, weight]) == (loss, "forward", 2)
    assert first([fine, early, late, moment, weight]) == (late, "backward", 3)
    seen = distance("gradient", "grad(a)", bad=False)
    assert first([fine, seen, moment, weight]) == (moment, "optimizer", 1)
    assert first([fine, moment]) == (moment, "", 0) and first([fine]) == (None, "", 0)


def test_the_step_from_which_nothing_is_said() -> None:
    said = [distance("parameter", "a", bad=False)]
    silent = [replace_allowed(each) for each in said]
    assert unjudged_from([said, silent, said]) is None and unjudged_from([said, silent, silent]) == 2


def replace_allowed(each: StepDistance) -> StepDistance:
    return StepDistance(step=each.step, tensor=each.tensor, kind=each.kind, test=each.test)


def test_of_many_tensors_the_nearest_to_failing_are_kept() -> None:
    many = [distance("parameter", f"p{at}", test=at * 1e-9, bad=False) for at in range(1, 101)]
    names = {each.tensor for each in shown_distances([[distance("output", "loss", bad=False), *many]], many[0])}
    assert {"loss", "p1", "p100", "p90"} <= names and "p50" not in names


def test_a_program_that_does_not_train_is_not_judged() -> None:
    subject = Subject(Workload(nn.Linear(2, 2), (torch.ones(2, 2),)))
    steps = trained(subject, Compiler("eager", lambda model: model), 2, False, 3.0, lambda side: None)
    assert steps.verdict == "unjudged" and "changes nothing" in sentence(steps, "eager")


def test_a_side_that_fails_on_its_way_is_named_with_its_step() -> None:
    calls = 0

    def breaks(model: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise RuntimeError("out of luck")
            return model(*args)

        return call

    workload = trainings.with_loss()
    steps = trained(Subject(workload), Compiler("broken", breaks), 4, True, 3.0, lambda side: None)
    assert (steps.verdict, steps.failed_side, steps.taken) == ("error", "broken", 2)
    assert sentence(steps, "broken").startswith("broken failed at step 3 of 4: ")


def test_without_float64_the_training_is_held_against_eagers_own_roundings() -> None:
    labels = torch.randint(0, 4, (8,))

    def bits(out: torch.Tensor) -> torch.Tensor:
        assert out.view(torch.int32).shape == out.shape  # what has no meaning in float64
        return nn.functional.cross_entropy(out, labels)

    workload = Workload(trainings.net(), (torch.randn(8, 16),), {}, bits)
    right = trained(Subject(workload), Compiler("same", lambda model: model), 3, True, 3.0, lambda side: None)
    assert (right.verdict, right.truth) == ("passed", "eager"), sentence(right, "same")
    assert "compared with eager" in sentence(right, "same")

    def off(model: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda *args: model(*args) * 1.001

    wrong = trained(Subject(workload), Compiler("off", off), 3, True, 3.0, lambda side: None)
    assert wrong.verdict == "failed" and wrong.where == "forward"


def test_what_is_said_of_a_training_that_parts() -> None:
    parted = distance("gradient", "grad(fc.weight)", step=3)
    steps = TrainingSteps(requested=5, verdict="failed", taken=5, parted=parted, where="backward", others=2)
    said = sentence(steps, "inductor")
    assert said == (
        "inductor parts from eager at step 3 of 5: `grad(fc.weight)` is 0.001 of its size from float64, eager 1e-07, "
        "float64 begun a rounding away 1e-08 (allowed 1e-06), and 2 other tensors with it; "
        "the backward is wrong: what the forward gives is right"
    )
    assert replace(JUDGE, few=True).few


def test_a_large_weight_is_in_float64_while_its_side_waits() -> None:
    """Where one call is compared, such weights have no memory but while an op takes them: a side keeps its own."""
    model = nn.Linear(600, 600)
    subject = Subject(Workload(lambda x: model(x).sum(), (torch.randn(2, 600),), {}, None, grad=True))
    before = model.weight.detach().clone()
    with subject.restored():
        training = Training(subject, backward=False)
        same, moved = training.float64(), training.float64(training.moved)
        with same.restore_point.active():
            held = model.weight.detach().clone()
        with moved.restore_point.active():
            away = model.weight.detach().clone()
    assert held.dtype == torch.float64 and torch.equal(held, before.double())
    assert 0 < float((away - held).abs().max()) < 1e-7
    assert torch.equal(model.weight, before)
