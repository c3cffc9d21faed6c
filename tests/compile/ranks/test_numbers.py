"""The numbers of ranks: compiled graphs are compared with eager in each rank, and replicas with one another."""

from pathlib import Path

import pytest
import torch.distributed as dist

from idbg.render.text import text
from idbg.schema.runs import fold
from idbg.session import ranks
from idbg.session.reading import load
from idbg.views import ranks as view
from idbg.views import remarks
from tests.harness.jobs import JobReport, compare_job

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")

PLANTED = """
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
import torch.distributed._functional_collectives as functional

def backend(gm, inputs):
    def call(*args):
        found = gm(*args)
        return [found[0] * 1.01, *found[1:]] if rank == 1 else found
    return call

@torch.compile(backend=backend)
def wrong(x):
    return x.sin() + 1  # wrong in rank 1

@torch.library.custom_op("planted::drift", mutates_args=())
def drift(x: torch.Tensor) -> torch.Tensor:
    return x + (0.5 if rank == 1 else 0.0)

@drift.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile(backend="eager")
def same_inputs(x):
    return drift(x.relu()) * 2  # drifts

@torch.compile(backend="aot_eager")
def reduced(x):
    return functional.all_reduce(x.cos(), "sum", dist.group.WORLD) + 1  # waits for all

def draws_before(gm, inputs):
    def call(*args):
        torch.rand(1)
        return gm(*args)
    return call

@torch.compile(backend=draws_before)
def drawn(x):
    return torch.nn.functional.dropout(x, 0.5) + 1

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return self.linear(x)  # reads the weight

model = Model()
parallel = DistributedDataParallel(model)
step = torch.compile(model, backend="aot_eager")  # the mistake: no gradient is averaged
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
for turn in range(3):
    step(torch.full((3, 4), float(rank + turn))).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
scale = nn.Parameter(distribute_tensor(torch.ones(3), init_device_mesh("cpu", (2,)), [Replicate()]))
with torch.no_grad():
    scale.to_local().add_(rank)

@torch.compile(backend="eager")
def scaled():
    return scale * 2  # reads what is replicated

scaled()
wrong(torch.ones(3) * (rank + 1))
same_inputs(torch.ones(3))
before = torch.full((3,), float(rank))
print(rank, reduced(before).tolist())
drawn(torch.ones(8))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> JobReport:
    return compare_job(PLANTED, tmp_path_factory.mktemp("job"))


def line_of(job: JobReport, text: str) -> int:
    lines = (job.folder.parents[1] / "train.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


def test_wrong_numbers_of_one_rank(job: JobReport) -> None:
    (found,) = job.differences("numbers")
    assert found["sides"][0]["ranks"] == [1] and found["level"] == "error" and job.status == 1
    assert found["what"].startswith("wrong ") and found["what"].endswith(": out[0]")
    assert [each["numbers"] for each in job.record["ranks"]] == ["not comparable", "wrong"]


def test_replicas_that_part(job: JobReport) -> None:
    found = [each for each in job.differences("replica") if each.get("frame") == "Model.forward"]
    assert found and {each["number"] for each in found} == {2}, "they part after the first step"
    assert "weight" in found[0]["what"] and found[0]["level"] == "error"
    assert found[0]["place"][1] == line_of(job, "# reads the weight")
    assert "weight_ and 1 more are not the same in all replicas" in found[0]["sentence"]
    first, second = (side["node_value"] for side in found[0]["sides"])
    assert first["checksum"] != second["checksum"] and first["mean"] != second["mean"]


def test_a_parameter_that_a_mesh_replicates(job: JobReport) -> None:
    (found,) = [each for each in job.differences("replica") if each.get("frame") == "scaled"]
    assert "scale" in found["what"] and found["place"][1] == line_of(job, "# reads what is replicated")
    assert sorted(side["node_value"]["mean"] for side in found["sides"]) == [1.0, 2.0]


def test_a_node_whose_inputs_agree(job: JobReport) -> None:
    (found,) = job.differences("node")
    assert found["frame"] == "same_inputs" and found["what"].startswith("drift") and found["level"] == "warning"
    assert found["place"][1] == line_of(job, "# drifts")


def test_graphs_with_collectives_are_compared_together(job: JobReport) -> None:
    assert job.output.count("[2.540302") == 2, "what the program computes is unchanged"
    assert not job.differences("result") and not [
        each for each in job.record["differences"] if each.get("frame") == "reduced" and each["level"] == "error"
    ]
    diff = fold(load(job.folder / "processes" / "rank0")).last
    assert diff is not None and diff.diff is not None
    names = {each.name: each for each in diff.diff.outputs if each.name.startswith("reduced")}
    assert names and all(each.passed for each in names.values())


def test_what_draws_otherwise_is_not_comparable(job: JobReport) -> None:
    run = fold(load(job.folder / "processes" / "rank0")).last
    assert run is not None and run.diff is not None
    (drawn,) = [each for each in run.diff.outputs if each.name.startswith("drawn")]
    assert not drawn.judged and not drawn.failed
    assert "the graph draws random numbers" in remarks.sentence(run.diff.not_comparable)


def test_a_rank_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own collective would wait for ever: the comparison is left out, and the program goes on."""
    body = """
import torch.distributed._functional_collectives as functional
import idbg.engine.kerneldiff.in_program.lockstep as lockstep
lockstep.SECONDS = 2.0

group = dist.new_group([0])

@torch.compile(backend="eager")
def alone(x):
    return functional.all_reduce(x, "sum", group) + 1

if rank == 0:
    print(alone(torch.ones(2)))
dist.barrier()
dist.destroy_process_group()
"""
    found = compare_job(body, tmp_path)
    assert "tensor([2., 2.])" in found.output
    assert [each["numbers"] for each in found.record["ranks"]] == ["not comparable", "not compared"]
    assert found.status == 3
    reason = "numbers of rank 0: the graph was not compared: not all of the 2 ranks came to this graph"
    assert reason in text(view.view(ranks.of_session(found.folder)))
    run = fold(load(found.folder / "processes" / "rank0")).last
    assert run is not None and run.diff is not None
    assert "not all of the 2 ranks came to this graph" in remarks.sentence(run.diff.not_comparable)
