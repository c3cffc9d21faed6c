"""Every script that is handed over fails as it should in a fresh process, also where the search was stopped early."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from idbg.schema.repros import Budget, FailureKind, Sought
from tests.harness.minified import Minifying

FEW = Budget(calls=3, seconds=240)
BREAKS = """
def f(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos() + 1
def program():
    return f, (torch.randn(4, 8),)
"""
UNLOWERED = """
import torch._inductor.config as config
config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"
def program():
    return lambda x: torch.relu(x.sin() + 1).cos(), (torch.randn(4, 8),)
"""
TAN = "import sys\nsys.exit('tan' in open(sys.argv[-1]).read())\n"


@dataclass(frozen=True)
class Failing:
    """A program, its backend, and what is looked for in it."""

    text: str
    backend: str
    sought: Sought
    kind: FailureKind


TABLE = {
    "a compile error": Failing(UNLOWERED, "inductor", Sought(), "compile"),
    "a graph break": Failing(BREAKS, "eager", Sought("break"), "break"),
    "a command": Failing(
        "def program():\n    return lambda x: x.sin().tan().cos(), (torch.randn(4),)\n",
        "eager",
        Sought("check"),
        "check",
    ),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier searches tried is none of this one's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_what_is_handed_over_fails_as_it_should(name: str, tmp_path: Path) -> None:
    failing = TABLE[name]
    sought = failing.sought
    if sought.kind == "check":
        (tmp_path / "check.py").write_text(TAN)
        sought = Sought("check", command=(sys.executable, str(tmp_path / "check.py")))
    bench = Minifying(tmp_path, failing.text, backend=failing.backend)
    found = bench.minified(sought, budget=FEW)
    assert found.reproduced, found.printed
    assert (found.signature.kind, found.status) == (failing.kind, 1)
    assert "REPRODUCED" in found.printed and found.guarantee
    assert "not known to be minimal" in found.guarantee or found.minimal
