"""N steps of a compiled training: what is right parts nowhere, what is wrong at its step and in its tensor."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._inductor import decomposition

from idbg import KernelDiff
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.steps.run import Compiler, trained
from idbg.engine.program.load import Workload
from idbg.schema.steps import TrainingSteps
from idbg.views.steps import sentence
from tests.harness import trainings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:Profiler record function"),
]


def steps_of(workload: Workload, count: int, backend: str | Callable[..., Any] = "inductor") -> TrainingSteps:
    compiler = Compiler("inductor", partial(torch.compile, backend=backend))
    return trained(Subject(workload), compiler, count, workload.loss is not None, 3.0, lambda side: None)


CLEAN = {
    "adam": lambda: trainings.training("adam", rate=1e-3),
    "adam that is fast": lambda: trainings.training("adam", rate=0.05),
    "sgd with momentum": lambda: trainings.training("sgd"),
    "two pieces": lambda: trainings.training("adamw", rate=1e-3, pieces=2),
    "every second call": lambda: trainings.training("sgd", every=2),
    "autocast": lambda: trainings.training("sgd", dtype=torch.bfloat16),
    "scaler": lambda: trainings.training("adam", rate=1e-3, scale=65536.0),
    "a rate that decays": lambda: trainings.training("sgd", decays=True),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_training_that_is_right_parts_nowhere(name: str) -> None:
    steps = steps_of(CLEAN[name](), 6)
    assert (steps.verdict, steps.taken, steps.by_us) == ("passed", 6, False), sentence(steps, name)
    trained_tensors = [each for each in steps.distances if each.kind == "parameter" and each.step == 6]
    assert trained_tensors and all(0 < each.test < 0.01 for each in trained_tensors)


@pytest.fixture
def wrong_gelu_backward() -> Iterator[None]:
    """Inductor's decomposition of GELU's backward is off by 0.1 %."""
    from torch._decomp import get_decompositions

    op = torch.ops.aten.gelu_backward.default
    held = decomposition.decompositions.get(op)
    own = held or get_decompositions([torch.ops.aten.gelu_backward])[op]
    decomposition.decompositions[op] = lambda *args, **kwargs: own(*args, **kwargs) * 1.001
    decomposition.fast_random_decomps.cache_clear()
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield
    if held is None:
        del decomposition.decompositions[op]
    else:
        decomposition.decompositions[op] = held
    decomposition.fast_random_decomps.cache_clear()


def test_a_wrong_backward_is_named_by_its_gradient(wrong_gelu_backward: None) -> None:
    workload = trainings.with_loss()
    report = KernelDiff(workload.model, workload.args, loss=workload.loss, steps=5).compare()
    steps = report.steps
    assert steps is not None and steps.by_us and report.verdict == "failed"
    assert steps.parted is not None and (steps.parted.step, steps.where) == (1, "backward")
    assert steps.parted.tensor in ("grad(0.bias)", "grad(0.weight)")
    assert steps.parted.test == pytest.approx(1e-3, rel=0.1)
    assert "the backward is wrong" in sentence(steps, "inductor")


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
def test_an_optimizer_that_loses_its_decay_is_named(kind: str) -> None:
    steps = steps_of(trainings.keeping_gradients(kind), 4, trainings.without_decay)
    assert steps.verdict == "failed" and steps.parted is not None
    assert (steps.parted.step, steps.where) == (1, "optimizer"), sentence(steps, "inductor")
    assert steps.parted.kind == ("parameter" if kind == "adamw" else "moment")


def test_a_buffer_that_is_lost_is_named() -> None:
    steps = steps_of(trainings.with_loss(norm=True), 4, trainings.without_mean)
    assert steps.parted is not None
    assert (steps.parted.step, steps.parted.tensor, steps.parted.unmoved) == (1, "1.running_mean", True)
    assert "is as it was before the first step" in sentence(steps, "inductor")


def test_what_goes_wrong_later_is_named_at_its_step() -> None:
    steps = steps_of(trainings.with_loss(), 5, trainings.wrong_from(3))
    assert steps.parted is not None
    assert (steps.parted.step, steps.parted.kind, steps.where) == (3, "output", "forward")
    assert [each.failed for each in steps.distances if each.tensor == steps.parted.tensor][:3] == [False, False, True]


def unstable(rate: float) -> Workload:
    torch.manual_seed(0)
    layers = [nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4)]
    model = nn.Sequential(*layers)
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    optimizer = torch.optim.SGD(model.parameters(), rate)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Workload(step, (x, y), {}, None, grad=True)


@pytest.mark.parametrize("rate", [4.0, 8.0, 16.0])
def test_a_training_that_is_unstable_by_itself_is_not_accused(rate: float) -> None:
    steps = steps_of(unstable(rate), 12)
    assert steps.verdict == "passed", sentence(steps, "inductor")
    assert steps.amplified is not None and steps.amplified > 100
    assert "unstable by itself" in sentence(steps, "inductor")


def test_the_program_is_left_as_it_was() -> None:
    workload = trainings.keeping_gradients("adamw")
    subject = Subject(workload)
    before = {name: each.detach().clone() for name, each in subject.tensors.items()}
    trained(subject, Compiler("inductor", torch.compile), 3, False, 3.0, lambda side: None)
    assert all(torch.equal(each, before[name]) for name, each in subject.tensors.items())
    assert all(each.grad is None and each.dtype == torch.float32 for each in subject.parameters.values())
    assert not any(optimizer.state for optimizer in subject.optimizers.values())


@pytest.mark.parametrize("rate", [1e-3, 0.05])
def test_adams_factors_in_float32_are_no_fault_of_one_compiled_step(rate: float) -> None:
    workload = trainings.training("adam", rate=rate)
    report = KernelDiff(workload.model, workload.args, grad=True).compare()
    assert report.passed, report.summary()


def test_a_decay_that_is_lost_fails_one_compiled_step() -> None:
    workload = trainings.training("adamw")
    report = KernelDiff(workload.model, workload.args, grad=True, test=trainings.without_decay).compare()
    assert report.verdict == "failed" and any("weight (after)" in one.name for one in report.outputs if one.failed)


def test_a_training_whose_scaler_leaves_out_every_step_says_so() -> None:
    steps = steps_of(trainings.training("adam", dtype=torch.float16, scale=2.0**30), 2)
    assert steps.verdict == "unjudged" and "the GradScaler left out every step" in sentence(steps, "inductor")
