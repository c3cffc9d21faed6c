"""N steps of a compiled training on a GPU: autocast, a GradScaler that skips steps, a planted loss of decay."""

from functools import partial

import pytest
import torch

from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.steps.run import Compiler, trained
from idbg.engine.program.load import Workload
from idbg.schema.steps import TrainingSteps
from idbg.views.steps import sentence
from tests.harness import trainings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
    pytest.mark.filterwarnings("ignore:Profiler record function"),
]


def steps_of(workload: Workload, count: int, backend: object = "inductor") -> TrainingSteps:
    compiler = Compiler("inductor", partial(torch.compile, backend=backend))
    return trained(Subject(workload), compiler, count, workload.loss is not None, 3.0, lambda side: None)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("adam", {"rate": 1e-3}),
        ("adamw", {"rate": 1e-3, "pieces": 2}),
        ("sgd", {"dtype": torch.bfloat16}),
        ("sgd", {"dtype": torch.float16, "scale": 65536.0}),
        ("adam", {"rate": 1e-3, "dtype": torch.float16, "scale": 2.0**19}),
    ],
)
def test_a_training_on_a_gpu_that_is_right_parts_nowhere(kind: str, settings: dict[str, object]) -> None:
    steps = steps_of(trainings.training(kind, device="cuda", **settings), 6)  # type: ignore[arg-type]
    assert (steps.verdict, steps.taken) == ("passed", 6), sentence(steps, "inductor")
    assert any(each.kind == "parameter" and each.test > 0 for each in steps.distances)


def test_an_optimizer_on_a_gpu_that_loses_its_decay_is_found() -> None:
    steps = steps_of(trainings.training("adamw", device="cuda"), 3, trainings.without_foreach_decay)
    assert steps.parted is not None and steps.parted.kind == "parameter", sentence(steps, "inductor")
    assert steps.parted.step == 1


def test_a_side_that_waits_lies_in_the_hosts_memory() -> None:
    """Of Adam's state, gradients and weights there is no second copy on the device when all sides wait."""
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    subject = Subject(Workload(step, (torch.randn(4, 1024, device="cuda"),), {}, None, grad=True))
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    with subject.restored():
        from idbg.engine.kerneldiff.steps.training import Training

        training = Training(subject, backward=False)
        held = torch.cuda.memory_allocated()
        sides = [training.float64(), training.eager(), training.float64(training.moved), training.eager()]
        for _ in training.steps(2, sides[0], sides[1:3]):
            assert torch.cuda.memory_allocated() <= held + 0.2 * weights
