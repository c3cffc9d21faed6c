"""What makes ranks differ, hang or die is planted in jobs of gloo ranks, and found with its line."""

import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from idbg.schema.events import OutputWritten
from idbg.schema.programs import Program
from idbg.session.files import is_live
from idbg.session.launch import new_session
from idbg.session.session import Session
from tests.harness.jobs import SETUP, JobReport, run_job

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")


def line_of(job: JobReport, text: str) -> int:
    """The line of the job's script with this text."""
    lines = (job.folder.parents[1] / "train.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


DIFFERENT = """
@torch.compile(backend="eager")
def same(x):
    return x * 2 + 1

@torch.compile(backend="eager")
def branch(x, rank):
    if rank == 0:
        return x * 2  # rank 0
    return x + 1  # others

@torch.compile(backend="eager")
def shape(x):
    return x.relu()  # another shape

def backend(gm, inputs):
    if rank == 1:
        time.sleep(3.5)
    return gm.forward

@torch.compile(backend=backend)
def slow(x):
    return x.relu()

x = same(torch.ones(4))
branch(x, rank)
shape(torch.ones(4 if rank != 1 else 5, 3))
dist.all_reduce(x)
slow(x)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> JobReport:
    return run_job(DIFFERENT, tmp_path_factory.mktemp("job"))


def test_ranks_that_do_the_same_are_equal(job: JobReport) -> None:
    row = next(row for row in job.record["frames"] if row["function"] == "same")
    assert [ranks for ranks, _ in row["groups"]] == [[0, 1]]
    assert job.status == 0, "nothing that differs stops the job"
    assert [each["ended"] for each in job.record["ranks"]] == ["ended", "ended"]
    assert [each["collectives"] for each in job.record["ranks"]] == [{"default_pg": 2}] * 2


def test_a_branch_on_the_rank(job: JobReport) -> None:
    first = next(each for each in job.differences("graph") if each["frame"] == "branch")
    assert {side["line"] for side in first["sides"]} == {line_of(job, "# rank 0"), line_of(job, "# others")}
    assert first["what"] == "dynamo" and "branch has different dynamo graphs" in first["sentence"]
    assert job.record["differences"][0] == first, "it is the first in the program"


def test_a_shape_that_differs(job: JobReport) -> None:
    first = next(each for each in job.differences("graph") if each["frame"] == "shape")
    assert {side["value"].rpartition(": ")[2] for side in first["sides"]} == {"f32[4,3]", "f32[5,3]"}
    assert first["place"][1] == line_of(job, "# another shape")


def test_a_rank_that_compiles_longer(job: JobReport) -> None:
    first = next(each for each in job.differences("time") if each["frame"] == "slow")
    assert first["sides"][0]["ranks"] == [1] and float(first["sides"][0]["value"]) > 3


FOUR = """
import subprocess

@torch.compile(backend="eager")
def step(x):
    return x.relu()  # here

if rank == 0:
    code = "import torch; torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))"
    subprocess.run([sys.executable, "-c", code], check=True)
x = step(torch.ones(4 if rank != 2 else 5, 3))
dist.barrier()
dist.destroy_process_group()
"""


def test_one_of_four_ranks_and_what_a_rank_starts_which_is_no_rank(tmp_path: Path) -> None:
    found = run_job(FOUR, tmp_path, 4, timeout=240)
    assert found.status == 0, found.output[-3000:]
    first = found.differences("graph")[0]
    assert first["sides"][0]["ranks"] == [2] and first["sides"][0]["line"] == line_of(found, "# here")
    assert sorted(map(len, found.record["groups"])) == [1, 3] and found.record["unseen"] == []
    names = sorted(each.name.partition("-")[0] for each in (found.folder / "processes").glob("[!.]*"))
    assert names == ["child", "rank0", "rank1", "rank2", "rank3"]
    assert [each["rank"] for each in found.record["ranks"]] == [0, 1, 2, 3]


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
    assert {side["line"] for side in first["sides"]} == {line_of(found, "# rank 0"), line_of(found, "# rank 1")}
    assert first["number"] == 2
    assert found.status != 0


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
    assert waits["ranks"] == [0] and waits["line"] == line_of(found, "# waits here")
    assert first["to_ranks"] == [1] and late["line"] == line_of(found, "# stands here")


PRINTS = """
x = torch.ones(4)
dist.all_reduce(x)
print(f"rank {rank} has {x[0].item()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


def test_a_screen_follows_a_job(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SETUP.format(timeout=60) + PRINTS)
    program = Program(str(script), cwd=str(tmp_path))
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script))
    with Session.of_job(command, program, new_session(program, tmp_path / "kept")) as session:
        deadline = time.monotonic() + 120
        while not _is_over(session) and time.monotonic() < deadline:
            time.sleep(0.1)
        printed = "".join(event.text for event in session.events if isinstance(event, OutputWritten))
    assert "rank 0 has 2.0" in printed and "rank 1 has 2.0" in printed
    assert [each.ended and each.ended.exit_status for each in session.history.processes.values()] == [0, 0]
    assert not is_live(session.folder)
    assert all((session.folder / "processes" / f"rank{rank}" / "digest.json").exists() for rank in (0, 1))


def _is_over(session: Session) -> bool:
    known = session.history.processes.values()
    return len(known) == 2 and all(each.ended for each in known) and not is_live(session.folder)


FEWER = """
for number in range(3):
    if number == 2 and rank == 1:
        time.sleep(1) or sys.exit(3)  # meanwhile rank 0 begins its last collective
    dist.all_reduce(torch.ones(4))
"""


def test_where_the_recorder_is_off_the_groups_own_counts_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")
    found = run_job(FEWER, tmp_path)
    (unequal,) = found.differences("count")
    assert [(side["ranks"], side["value"]) for side in unequal["sides"]] == [([1], "2"), ([0], "3")]
    assert unequal["place"][1] == line_of(found, "sys.exit(3)")
    assert not found.differences("wait"), "whether a rank waits is not known"
