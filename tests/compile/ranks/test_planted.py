"""What makes ranks differ, hang or die is planted in jobs of gloo ranks, and found with its line."""

from pathlib import Path

import pytest
import torch.distributed as dist

from tests.harness.jobs import run_job

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")


def line_of(folder: Path, text: str) -> int:
    """The line of the job's script with this text."""
    lines = (folder / "train.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


EQUAL = """
@torch.compile(backend="eager")
def step(x):
    return x * 2 + 1

x = step(torch.ones(4))
dist.all_reduce(x)
dist.destroy_process_group()
"""


def test_ranks_that_do_the_same_are_equal(tmp_path: Path) -> None:
    found = run_job(EQUAL, tmp_path)
    assert found.status == 0, found.output
    assert found.record["differences"] == [] and found.record["groups"] == [[0, 1]]
    assert [each["ended"] for each in found.record["ranks"]] == ["ended", "ended"]
    assert all(each["collectives"] for each in found.record["ranks"]), "gloo has a flight recorder"


BRANCH = """
@torch.compile(backend="eager")
def step(x, rank):
    if rank == 0:
        return x * 2  # rank 0
    return x + 1  # others

step(torch.ones(4), rank)
dist.destroy_process_group()
"""


def test_a_branch_on_the_rank(tmp_path: Path) -> None:
    found = run_job(BRANCH, tmp_path)
    first = found.differences("graph")[0]
    places = {side["line"] for side in first["sides"]}
    assert places == {line_of(tmp_path, "# rank 0"), line_of(tmp_path, "# others")}
    assert first["what"] == "dynamo" and "step" in first["sentence"]


SHAPE = """
@torch.compile(backend="eager")
def step(x):
    return x.relu()  # here

step(torch.ones(4 if rank != 1 else 5, 3))
dist.destroy_process_group()
"""


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_shape_that_differs(tmp_path: Path, ranks: int) -> None:
    found = run_job(SHAPE, tmp_path, ranks)
    first = found.differences("graph")[0]
    assert first["sides"][0]["ranks"] == [1] and first["sides"][0]["line"] == line_of(tmp_path, "# here")
    assert "5, 3" in first["sides"][0]["value"].replace("5,3", "5, 3")
    assert sorted(map(len, found.record["groups"])) == [1, ranks - 1]


ORDER = """
a, b = torch.ones(8), torch.ones(8)
dist.all_reduce(a)
first, second = (b, a) if rank == 1 else (a, b)
if rank == 0:
    dist.broadcast(first, 0)  # rank 0
    dist.all_reduce(second)
else:
    dist.all_reduce(second)  # rank 1
    dist.broadcast(first, 0)
"""


def test_a_collective_out_of_order(tmp_path: Path) -> None:
    found = run_job(ORDER, tmp_path, timeout=10)
    first = found.differences("collective")[0]
    assert {side["line"] for side in first["sides"]} == {line_of(tmp_path, "# rank 0"), line_of(tmp_path, "# rank 1")}
    assert first["number"] == 2
    assert found.status != 0


SLOW = """
def backend(gm, inputs):
    if rank == 1:
        time.sleep(3.5)
    return gm.forward

@torch.compile(backend=backend)
def step(x):
    return x.relu()

step(torch.ones(4))
dist.barrier()
dist.destroy_process_group()
"""


def test_a_rank_that_compiles_longer(tmp_path: Path) -> None:
    found = run_job(SLOW, tmp_path)
    first = found.differences("time")[0]
    assert first["sides"][0]["ranks"] == [1] and float(first["sides"][0]["value"]) > 3
    assert first["frame"] == "step"


KILLED = """
@torch.compile(backend="eager")
def step(x):
    return x.relu()

step(torch.ones(4))
dist.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(4))  # waits
"""


def test_a_rank_that_is_killed(tmp_path: Path) -> None:
    found = run_job(KILLED, tmp_path, timeout=20)
    assert found.status != 0
    first = found.differences("ended")[0]
    assert first["sides"][0]["ranks"] == [1] and "SIGKILL" in first["sentence"]


HANGS = """
@torch.compile(backend="eager")
def step(x):
    return x.relu()

x = step(torch.ones(4))
dist.barrier()
if rank == 1:
    time.sleep(60)  # stands here
dist.all_reduce(x)  # waits here
"""


def test_a_rank_that_hangs_in_a_collective(tmp_path: Path) -> None:
    found = run_job(HANGS, tmp_path, timeout=10)
    first = found.differences("wait")[0]
    waits, late = first["sides"]
    assert waits["ranks"] == [0] and waits["line"] == line_of(tmp_path, "# waits here")
    assert first["to_ranks"] == [1] and late["line"] == line_of(tmp_path, "# stands here")
