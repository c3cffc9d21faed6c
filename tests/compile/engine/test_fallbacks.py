"""A backend that catches its own compiler's error and runs the graph natively has compiled nothing: that is said."""

import importlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch._dynamo.backends import registry

from idbg import KernelDiff
from idbg.engine.bench import measure
from idbg.engine.failures import fallbacks
from idbg.schema.bench import BenchBackend, BenchCase, Failed, Task
from idbg.schema.programs import Program

SHY = """
import logging
import torch

logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)


@torch._dynamo.register_backend(name="shy")
def compile(gm, inputs):
    def call(*args):
        logger.debug("it failed with no such tile. Falling back to native PyTorch execution.")
        logger.warning("heard by all")
        return gm(*args)

    return call
"""


@pytest.fixture(autouse=True)
def shy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend "shy" of a package of its own, which says at a level that is off that it gave up."""
    folder = tmp_path / "src" / "idbg_shy_backend"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .compiler import *\n")
    (folder / "compiler.py").write_text(SHY)
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.import_module("idbg_shy_backend")
    torch._dynamo.reset()
    yield
    for name in [name for name in sys.modules if name.startswith("idbg_shy_backend")]:
        del sys.modules[name]
    registry._COMPILER_FNS.pop("shy")
    registry._BACKENDS.pop("shy")


def test_a_comparison_does_not_hold_eager_against_eager(caplog: pytest.LogCaptureFixture) -> None:
    report = KernelDiff(torch.nn.Linear(4, 2), torch.ones(3, 4), test="shy").compare()
    assert report.verdict == "error"
    (failure,) = [side.failure for side in report.sides if side.failure]
    assert (failure.kind, failure.type) == ("backend", "Fallback") and "no such tile" in failure.message
    said = [record.getMessage() for record in caplog.records if record.name.startswith("idbg_shy_backend")]
    assert said and set(said) == {"heard by all"}, "the user hears what they would have heard without us"


def test_who_listens_within_another_hears_it_too_and_both_leave_no_trace() -> None:
    logger = logging.getLogger("idbg_shy_backend.compiler")
    with fallbacks.fallback_messages("shy") as outer, fallbacks.fallback_messages("shy") as inner:
        logger.debug("falls back to eager")
        logger.debug("a pass did nothing")
    assert outer.found == inner.found == ["falls back to eager"]
    assert (logger.level, logger.filters) == (logging.WARNING, [])


def test_nobody_listens_to_torchs_own() -> None:
    with fallbacks.fallback_messages("inductor") as messages:
        logging.getLogger("torch._inductor").debug("falling back to eager")
    assert messages.found == []


@pytest.mark.parametrize("task", ["cold", "check"])
def test_a_benchmark_measures_nothing(tmp_path: Path, task: Task) -> None:
    path = tmp_path / "case.py"
    path.write_text(
        "import torch\nmodel = torch.nn.Linear(4, 2)\n\ndef program():\n    return model, (torch.ones(3, 4),)\n"
    )
    answer = measure.answer(BenchCase(program=Program(str(path), cwd=str(tmp_path)), backend=BenchBackend("shy")), task)
    assert isinstance(answer, Failed) and answer.failure.type == "Fallback"
