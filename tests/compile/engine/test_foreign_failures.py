"""What a foreign backend raises is that backend's, also in a comparison and in a benchmark."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch._dynamo.backends import registry

from idbg import KernelDiff
from idbg.engine.bench import measure
from idbg.schema.bench import BenchBackend, BenchCase, Checked, Failed, Task
from idbg.schema.programs import Failure, Program

HINT = "idbg_far_backend, the package of the backend far"


@pytest.fixture(autouse=True)
def _registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend "far" of a package of its own, which cannot compile anything."""
    folder = tmp_path / "src" / "idbg_far_backend"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .compiler import *\n")
    (folder / "compiler.py").write_text("def compile(gm, inputs):\n    raise RuntimeError('no such device')\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    package = importlib.import_module("idbg_far_backend")
    torch._dynamo.register_backend(package.compile, name="far")
    torch._dynamo.reset()
    yield
    registry._COMPILER_FNS.pop("far")
    registry._BACKENDS.pop("far")
    for name in [name for name in sys.modules if name.startswith("idbg_far_backend")]:
        del sys.modules[name]


def is_fars(failure: Failure | None) -> bool:
    assert failure is not None
    return failure.kind == "backend" and HINT in failure.hint and "no such device" in failure.message


def test_in_a_comparison() -> None:
    report = KernelDiff(torch.nn.Linear(4, 2), torch.ones(3, 4), test="far").compare()
    assert report.verdict == "error"
    assert {side.name: is_fars(side.failure) for side in report.sides if side.failure} == {"far": True}


@pytest.mark.parametrize("task", ["cold", "check"])
def test_in_a_benchmark(tmp_path: Path, task: Task) -> None:
    path = tmp_path / "case.py"
    path.write_text(
        "import torch\nmodel = torch.nn.Linear(4, 2)\n\ndef program():\n    return model, (torch.ones(3, 4),)\n"
    )
    answer = measure.answer(BenchCase(program=Program(str(path), cwd=str(tmp_path)), backend=BenchBackend("far")), task)
    if task == "check":
        assert isinstance(answer, Checked) and "no such device" in answer.diff_note
    else:
        assert isinstance(answer, Failed) and is_fars(answer.failure)
