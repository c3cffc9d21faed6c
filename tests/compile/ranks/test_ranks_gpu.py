"""The examples of distributed jobs run on NCCL, and what differs between ranks on two GPUs is found."""

from pathlib import Path

import pytest
import torch

from tests.harness.jobs import JobReport, compare_script, run_script

EXAMPLES = Path(__file__).parents[3] / "examples" / "distributed"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]

SETUP = """
import datetime, os, signal, time
import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
rank = dist.get_rank()
device = torch.device("cuda", local_rank)
"""


def run(body: str, folder: Path) -> JobReport:
    script = folder / "train.py"
    script.write_text(SETUP + body)
    return run_script(script, folder)


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "train.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel"])
def test_data_and_tensor_parallel_ranks_are_equal(tmp_path: Path, name: str) -> None:
    found = run_script(EXAMPLES / f"{name}.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    stops = [each for each in found.record["differences"] if each["level"] == "error"]
    graphs = found.differences("graph") + found.differences("absent")
    assert stops == [] and graphs == [], found.record["differences"]
    assert all(each["frames"] for each in found.record["ranks"])
    assert all(each["collectives"] for each in found.record["ranks"]), "NCCL's flight recorder was read"


def test_stages_of_a_pipeline_have_different_graphs(tmp_path: Path) -> None:
    found = run_script(EXAMPLES / "pipeline.py", tmp_path)
    assert found.status == 0, found.output[-3000:]
    first = found.differences("graph")[0]
    assert "relu" in first["sentence"] and "sigmoid" in first["sentence"]
    assert not [each for each in found.record["differences"] if each["level"] == "error"]


EQUAL_BUT_FOR_THE_DEVICE = """
@torch.compile
def step(x):
    return (x * 2).relu().sum()

step(torch.ones(64, 64, device=device))
dist.barrier()
torch.cuda.synchronize()
dist.destroy_process_group()
"""


def test_kernels_on_two_devices_are_equal(tmp_path: Path) -> None:
    found = run(EQUAL_BUT_FOR_THE_DEVICE, tmp_path)
    assert found.status == 0, found.output[-3000:]
    assert found.record["groups"] == [[0, 1]], found.record["differences"]
    row = found.record["frames"][0]
    assert row["groups"][0][1]["kernels"]["count"] >= 1


BRANCH = """
@torch.compile
def step(x, rank):
    if rank == 0:
        return x.sin()  # rank 0
    return x.cos()  # rank 1

step(torch.ones(64, device=device), rank)
dist.barrier()
dist.destroy_process_group()
"""


def test_a_branch_on_the_rank(tmp_path: Path) -> None:
    found = run(BRANCH, tmp_path)
    first = found.differences("graph")[0]
    assert {side["line"] for side in first["sides"]} == {line_of(tmp_path, "# rank 0"), line_of(tmp_path, "# rank 1")}


HANGS = """
@torch.compile
def step(x):
    return x.relu()

x = step(torch.ones(64, device=device))
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    time.sleep(90)  # stands here
dist.all_reduce(x)  # waits here
torch.cuda.synchronize()
"""


def test_a_rank_that_hangs_in_a_collective(tmp_path: Path) -> None:
    found = run(HANGS, tmp_path)
    assert found.status != 0
    first = found.differences("wait")[0]
    waits, late = first["sides"]
    assert waits["ranks"] == [0] and waits["line"] == line_of(tmp_path, "# waits here")
    assert first["to_ranks"] == [1] and late["line"] == line_of(tmp_path, "# stands here")


KILLED = """
x = torch.ones(64, device=device)
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(x)
torch.cuda.synchronize()
"""


def test_a_rank_that_is_killed(tmp_path: Path) -> None:
    found = run(KILLED, tmp_path)
    assert found.status != 0
    first = found.differences("ended")[0]
    assert first["sides"][0]["ranks"] == [1] and "SIGKILL" in first["sentence"]


@pytest.mark.parametrize("name", ["ddp", "fsdp2", "tensor_parallel", "pipeline"])
def test_numbers_of_the_examples_agree_in_all_ranks(tmp_path: Path, name: str) -> None:
    found = compare_script(EXAMPLES / f"{name}.py", tmp_path)
    assert found.status == 0, (found.record["differences"], found.output[-3000:])
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"]
    assert all(each["compared"] >= 4 for each in found.record["ranks"]), "outputs and gradients"


PARTED = """
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import torch.distributed._functional_collectives as functional

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x).relu()

torch.manual_seed(0)
model = Model().to(device)
parallel = DistributedDataParallel(model, device_ids=[local_rank])
step = torch.compile(model)  # and not the parallel one: gradients are not averaged
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
for turn in range(2):
    step(torch.full((32, 64), float(rank + 1), device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

@torch.compile
def reduced(x):
    return functional.all_reduce(torch.nn.functional.softmax(x, -1), "sum", dist.group.WORLD) + 1

reduced(torch.randn(32, 64, device=device))
dist.destroy_process_group()
"""


def test_replicas_that_part_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SETUP + PARTED)
    found = compare_script(script, tmp_path)
    parted = found.differences("replica")
    assert parted and {each["number"] for each in parted} == {2} and "weight" in parted[0]["what"]
    assert [each["numbers"] for each in found.record["ranks"]] == ["agree", "agree"], found.record["differences"]
    assert found.status == 1 and not found.differences("result")
