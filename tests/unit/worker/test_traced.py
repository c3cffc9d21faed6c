"""A torch with which the engine does not load is captured by its trace alone; a newer one than was tried says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import idbg
from idbg.schema.graphs import GraphId
from idbg.schema.runs import History
from idbg.session.summaries import read_whole

BROKEN = """
import sys
from importlib.abc import MetaPathFinder

class Broken(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "idbg.engine.compat.guards":
            raise ImportError("torch has another form")

sys.meta_path.insert(0, Broken())
"""
NEWER = """
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

class Newer(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch.version":
            return None
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module
        def named(module):
            run(module)
            module.__version__ = "9.9.0"
        spec.loader.exec_module = named
        return spec

sys.meta_path.insert(0, Newer())
"""
SCRIPT = """
import torch

def f(x):
    y = x.relu().sum()
    torch._dynamo.graph_break()
    return y + 1

for n in (3, 5):
    print(torch.compile(f, backend="aot_eager", dynamic=False)(torch.ones(n)).item())
"""
MODEL = """
import torch

def program():
    return torch.nn.Linear(4, 4), (torch.ones(2, 4),), lambda y: y.sum()
"""
pytestmark = pytest.mark.cold  # a process that begins as the program of a user does
ALONE, UNTRIED = "captures its trace alone", "torch 9.9.0 is newer than each that idbg was tried with"


def ran(folder: Path, start: str, *words: str) -> tuple[History, "subprocess.CompletedProcess[str]"]:
    """What `idbg` has of the program after it ran with this start of each process."""
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(start)
    root = Path(idbg.__file__).parents[1]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder / "start", root)))}
    done = subprocess.run(
        [sys.executable, "-m", "idbg", *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=900
    )
    (session,) = (folder / "debug_artifacts").iterdir()
    return read_whole(session)[1], done


def test_a_script_is_captured_by_torchs_trace_where_the_engine_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    history, done = ran(tmp_path, BROKEN, "run", "script.py", "--backend", "eager")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(ALONE) == 1 and "torch has another form" in done.stderr
    run, worker = history.last, history.worker
    assert run is not None and worker is not None and worker.captures == "trace"
    assert {GraphId("0/0", "dynamo"), GraphId("0/1", "dynamo")} <= {*run.graphs}
    assert run.breaks and run.recompiles and run.phases
    assert "4.0" in done.stdout + done.stderr and "6.0" in done.stdout + done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "idbg", "show", "last"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout.count(ALONE) == 1


@pytest.mark.slow
def test_a_function_that_returns_a_model_is_captured_so_too_and_a_comparison_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    history, done = ran(tmp_path, BROKEN, "diff", "model.py", "--backend", "inductor")
    assert done.returncode and ALONE in done.stderr
    assert history.last is not None and history.last.failure is not None
    assert "torch's trace alone is not enough" in history.last.failure.message


def test_a_newer_torch_is_captured_in_full_and_is_said_to_be_untried(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    history, done = ran(tmp_path, NEWER, "run", "model.py", "--backend", "eager")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(UNTRIED) == 1
    assert history.worker is not None and (history.worker.captures, history.worker.torch) == ("untried", "9.9.0")
    assert history.last is not None and history.last.graphs and "not recorded" not in done.stderr
