"""A comparison with each kernel compiles the program once, where the test side's own compile was seen whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from idbg.engine.compat import comparing
from idbg.engine.kerneldiff.observed_run import ObservedRun, run_observed
from idbg.engine.kerneldiff.sides.run import run_compiled
from idbg.engine.kerneldiff.sides.subject import Subject
from idbg.engine.kerneldiff.stages.captured import CompileRecord
from idbg.engine.program.load import Workload


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.nn.functional.gelu(self.first(x)).softmax(-1))


@contextmanager
def lowerings() -> Iterator[list[object]]:
    """Each graph that Inductor lowers while it lasts."""
    seen: list[object] = []
    with comparing.observe_graphs(seen.append, pytest.fail):
        yield seen


@pytest.fixture
def subject() -> Subject:
    torch.manual_seed(0)
    return Subject(Workload(Net(), (torch.randn(3, 8),), {}), input_gradients=True)


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))


def compared(subject: Subject, **options: object) -> tuple[ObservedRun, int]:
    """What was observed after a test side, and how many graphs were lowered for that."""
    made = CompileRecord()
    compile = partial(torch.compile, options=options) if options else torch.compile
    run_compiled("inductor", subject, made.compiling(compile), backward=True, within=made.captured)
    with lowerings() as lowered:
        return run_observed(subject, compile, backward=True, before=made), len(lowered)


def test_the_code_of_the_test_side_is_what_is_observed(subject: Subject) -> None:
    observed, lowered = compared(subject)
    assert lowered == 0
    torch._dynamo.reset()
    anew = run_observed(subject, torch.compile, backward=True)
    assert [(each.name, each.part, each.nodes) for each in observed.kernels] == [
        (each.name, each.part, each.nodes) for each in anew.kernels
    ]
    assert [each.error for each in observed.kernels] == [each.error for each in anew.kernels]
    rows = [observed.stages(observed.kernels, failed=False), anew.stages(anew.kernels, failed=False)]
    assert rows[0] == rows[1]
    assert {row.stage for row in rows[0] if row.judged} >= {"dynamo", "post_grad", "kernels"}


def test_graphs_of_a_cache_are_compiled_anew(subject: Subject) -> None:
    compared(subject)
    observed, lowered = compared(subject)
    assert lowered == 2  # forward and backward
    assert all(each.observed for each in observed.kernels)


def test_code_under_cuda_graphs_is_compiled_anew(subject: Subject) -> None:
    observed, lowered = compared(subject, **{"triton.cudagraphs": True})
    assert lowered == 2
    assert all(each.observed for each in observed.kernels)


def test_code_that_is_gone_is_compiled_anew(subject: Subject) -> None:
    made = CompileRecord()
    run_compiled("inductor", subject, made.compiling(torch.compile), backward=True, within=made.captured)
    torch._dynamo.reset()
    observed = run_observed(subject, torch.compile, backward=True, before=made)
    assert observed.kernels and all(each.observed for each in observed.kernels)
