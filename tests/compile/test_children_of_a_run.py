"""What a program's processes compile in a run of a session, as `idbg run` and the screen run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from idbg.cli.commands.run import status_with_policy
from idbg.cli.fail_on import Policy
from idbg.reports.baseline import NOTHING_KNOWN
from idbg.reports.fail_kinds import findings_of
from idbg.schema.processes import ProcessReport
from idbg.schema.programs import Program, Target
from idbg.schema.runs import History, Run, fold
from idbg.session import processes, reading
from idbg.session.session import Session
from idbg.views.diagnostics import of_processes
from tests.harness.children import engine_core, failing, pre_fork

pytestmark = pytest.mark.cold


def run_of(tmp_path: Path, script: Path, *argv: str) -> tuple[Run, History, Path]:
    """One run of the script, compiled by its own backends; the session is closed."""
    program = Program(path=str(script), argv=argv, cwd=str(tmp_path))
    with Session(program, Target(backend="inductor", accelerator="none", own_backend=True), output=tmp_path) as session:
        number = session.run()
        assert session.wait(500)
    history = fold(reading.load(session.folder))
    return history.runs[number], history, session.folder


def log_of(session: Path, process: ProcessReport) -> Run:
    folder = processes.find(session, process.name)
    assert folder is not None
    run = fold(reading.load(folder)).last
    assert run is not None
    return run


def printed(run: Run) -> str:
    return "".join(event.text for event in run.output if event.stream == "stdout")


def test_an_engine_that_is_spawned_compiles_in_a_log_of_its_own_and_its_death_is_named(tmp_path: Path) -> None:
    run, history, session = run_of(tmp_path, Path(engine_core.__file__), "killed")
    assert printed(run) == "ready\n1 74.0\n4 296.0\n1 74.0\nexit code -9\n"
    (engine,) = history.processes.values()
    assert engine.name.startswith("EngineCore_DP0-")
    assert engine.ended is not None
    assert (engine.ended.signal, engine.ended.exit_status) == ("SIGKILL", None)
    compiled = log_of(session, engine)
    assert compiled.backend == "aot_eager"
    assert len(compiled.frames) == 2 and len(compiled.recompiles) == 1
    assert {graph.stage for graph in compiled.graphs} == {"dynamo", "inference"}
    # the main process compiled nothing, and that is no failure
    assert (run.own_verdict, run.children, run.failure) == ("compiled", 1, None)
    assert run.verdict == "failed"  # as its process was killed
    assert not run.frames


def test_workers_that_a_server_forks_compile_in_logs_of_their_own(tmp_path: Path) -> None:
    run, history, session = run_of(tmp_path, Path(pre_fork.__file__))
    assert printed(run) == "worker 0: 4.0\nworker 1: 10.0\nworker 2: 18.0\n[0, 1, -11]\n"
    ends = sorted(
        (each.ended.signal, each.ended.exit_status) for each in history.processes.values() if each.ended is not None
    )
    assert ends == [("", 0), ("", 1), ("SIGSEGV", None)]
    for process in history.processes.values():
        compiled = log_of(session, process)
        assert len(compiled.graphs) == 1 and compiled.backend == "eager"
    assert not run.frames and not run.graphs  # nothing of them is in the main process's log
    assert run.children == 3


@pytest.fixture
def foreign_python(tmp_path: Path) -> Path:
    """A Python that has torch, and can import neither idbg nor what that needs."""
    (packages,) = (Path(path) for path in sys.path if path.endswith("site-packages"))
    own = tmp_path / "packages"
    own.mkdir()
    for entry in packages.iterdir():
        if not entry.name.startswith(("msgspec", "idbg", "_idbg")) and entry.suffix != ".pth":
            (own / entry.name).symlink_to(entry)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "own.pth").write_text(f"{own}\n")
    return tmp_path / "env" / "bin" / "python"


FOREIGN = """
import os, subprocess, sys
CODE = '''
import importlib.util, os, torch
assert importlib.util.find_spec("msgspec") is None
function = torch.compile(lambda x: (x * 2).relu(), backend="eager")
print(float(function(torch.ones(3)).sum()), [name for name in os.environ if name.startswith(("IDBG", "TORCH_TRACE"))])
'''
print(subprocess.run([sys.argv[1], "-c", CODE + "os._exit(9)"]).returncode)
"""


def test_a_child_that_cannot_import_idbg_is_read_from_its_trace(tmp_path: Path, foreign_python: Path) -> None:
    script = tmp_path / "foreign.py"
    script.write_text(FOREIGN)
    run, history, session = run_of(tmp_path, script, str(foreign_python))
    assert printed(run).split("\n")[:2] == ["6.0 []", "9"] or os.environ.get("TORCH_TRACE")
    (child,) = history.processes.values()
    assert child.how == "trace"
    assert child.ended is not None and child.ended.exit_status == 9
    compiled = log_of(session, child)
    assert [graph.stage for graph in compiled.graphs] == ["dynamo"]
    assert run.children == 1 and (run.own_verdict, run.verdict) == ("compiled", "failed")


QUEUE = """
import multiprocessing

def work(queue):
    queue.put("put")

if __name__ == "__main__":
    spawning = multiprocessing.get_context("spawn")
    queue = spawning.Queue()
    process = spawning.Process(target=work, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
"""


def test_a_queue_that_the_program_leaves_to_its_end_is_no_leak(tmp_path: Path) -> None:
    script = tmp_path / "queue_left.py"
    script.write_text(QUEUE)
    command = [sys.executable, "-m", "idbg", "run", str(script), "--output", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "put" in ended.stdout + ended.stderr and "leaked" not in ended.stderr


def test_an_exception_that_ends_a_child_is_a_finding_and_the_status_is_the_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "idbg", "run", str(failing.__file__), "--output", str(tmp_path)]
    ended = subprocess.run([*command, "-q"], capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "spawn 1\nfork 1\nforkserver 1\nraised\n" in ended.stdout
    assert ended.stdout.count("the backend failed: ValueError: this backend is broken (failing.py:8)") == 4
    (session,) = tmp_path.glob("failing-*")
    history = fold(reading.load(session))
    named = {process.name.partition("-")[0]: process for process in history.processes.values()}
    assert set(named) == {"Engine_spawn", "Engine_fork", "Engine_forkserver", "child"}
    for process in named.values():
        compiled = log_of(session, process)
        assert compiled.failure is not None and "this backend is broken" in compiled.failure.message
    failures = of_processes(history.processes.values())
    assert len(failures) == 4 and all("this backend is broken" in each.message for each in failures)

    run = history.runs[1]
    assert run.verdict == history.verdict == "failed" and run.own_verdict == "compiled"
    for kinds, expected in (([], 0), (["break"], 0), (["failure"], 1)):
        policy = Policy(findings_of(kinds), bool(kinds), None, NOTHING_KNOWN, update=False)
        assert status_with_policy(run, policy) == expected


SERVER = """
import multiprocessing, signal, sys, time

def serve(ready):
    import torch
    torch.compile(lambda x: (x * 2).relu(), backend="eager")(torch.ones(4))
    ready.release()
    time.sleep(300)

if __name__ == "__main__":
    ready = multiprocessing.Semaphore(0)
    for number in range(2):
        multiprocessing.Process(target=serve, args=(ready,), name=f"worker{number}", daemon=True).start()
    ready.acquire(), ready.acquire()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # which ends the workers
    print("ready", flush=True)
    time.sleep(300)
"""


def test_a_server_that_a_signal_ends_reports_its_workers_and_no_ranks(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    command = [sys.executable, "-m", "idbg", "run", "--json", "--output", str(tmp_path), "--"]
    outer = {name: value for name, value in os.environ.items() if name not in ("RANK", "SLURM_PROCID")}
    job = subprocess.Popen(
        [*command, sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=outer
    )
    assert job.stderr is not None
    assert "ready\n" in iter(job.stderr.readline, "")
    job.terminate()
    printed, _ = job.communicate(timeout=100)
    assert job.returncode == 143
    record = json.loads(printed)
    assert sorted(each["name"].partition("-")[0] for each in record["processes"]) == ["worker0", "worker1"]
    assert all(each["graphs"] == 1 and each["rank"] is None for each in record["processes"])
    assert record["ranks"]["ranks"] == []
