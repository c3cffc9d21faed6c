"""However the host ends, it leaves no process and no folder of ours behind, whatever the program does."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg.worker.child import Child
from tests.harness.fake_sessions import FAKE, FAKE_CHILD

# A host that starts a run, says the worker's process and folder, and waits. `hold` is the C call that holds the GIL.
HOST = """
import sys, time
from pathlib import Path
from idbg.schema.programs import Program, Target
from idbg.worker.child import Child
from idbg.worker.protocol import Compile
child = Child((sys.executable, sys.argv[1]), doomed=Path(sys.argv[3]))
child.send(Compile(run=1, program=Program(path=sys.argv[2]), target=Target(), folder="/nowhere"))
while child.process.poll() is None and not any(b"behaving" in line for line in child.lines() or ()):
    time.sleep(0.01)
time.sleep(0.2)  # it does now what it is to do
print(child.process.pid, child._scratch, flush=True)
time.sleep(60)
"""


def ended(pid: int, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("how", ["sleep", "hold the GIL", "orphan"])
def test_a_host_that_is_killed_leaves_no_worker_and_no_folder(how: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(FAKE_CHILD), how, str(cache)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    pid, folder = host.stdout.readline().split()
    assert os.path.isdir(folder)
    host.kill()
    host.wait()
    host.stdout.close()
    assert ended(int(pid))
    deadline = time.monotonic() + 60
    while (os.path.isdir(folder) or cache.exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(folder)
    assert not cache.exists()


JOB = """
import sys
from pathlib import Path
from idbg.schema.programs import Program
from idbg.session import launch
from idbg.worker.guard import temporary_folder
launcher = "trap 'kill $rank; exit' TERM; setsid sleep 600 & rank=$!; echo $$ $rank; wait"
session = launch.new_session(Program(path="ranks.py"), Path(sys.argv[1]))
with temporary_folder("idbg-") as folder:
    print(folder, flush=True)
    with launch.Job(["sh", "-c", launcher], Program(path="ranks.py"), session) as job:
        job.wait()
"""


def test_a_host_that_is_killed_leaves_no_launcher_no_rank_and_no_temporary_folder(tmp_path: Path) -> None:
    host = subprocess.Popen([sys.executable, "-c", JOB, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    folder = host.stdout.readline().strip()
    launcher, rank = map(int, host.stdout.readline().split())
    assert os.path.isdir(folder) and not ended(rank, 0.1)
    host.kill()
    host.wait()
    host.stdout.close()
    assert ended(launcher) and ended(rank)
    deadline = time.monotonic() + 60
    while os.path.isdir(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not os.path.exists(folder)


def test_a_child_that_is_ended_leaves_no_folder_and_no_guard() -> None:
    child = Child(FAKE)
    folder, guard = Path(child._scratch), child._guard
    assert guard is not None
    (folder / "build-1").mkdir()
    (folder / "build-1" / "cc1.s").touch()
    child.end()
    child.close()
    assert guard.returncode == 0
    assert not folder.exists()
