"""The smallest script that fails as the program does: what is left, what is said of it, and that it fails."""

from pathlib import Path

import pytest

from idbg.schema.diff import Comparison
from idbg.schema.graphs import NodeId
from idbg.schema.repros import Budget, Sought
from tests.harness.minified import Minifying

BUG = "import torch._inductor.config as config\nconfig.cpp.inject_relu_bug_TESTING_ONLY = '{}'\n"
LAYERS = """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
    def forward(self, x, last):
        x = torch.nn.functional.gelu(self.a(self.n(x)))
        return torch.relu(x) if last else torch.sin(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(2))
    def forward(self, x):
        for number, block in enumerate(self.blocks):
            x = block(x, number == 1)
        return x.sum(-1)
def program():
    return Net(), (torch.randn(4, 8),)
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What earlier searches tried is none of this one's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.slow
def test_a_compile_error_is_one_node_that_fails_in_a_fresh_process(tmp_path: Path) -> None:
    """Also after a search that was stopped, which keeps its smallest: the next one goes on from there."""
    bench = Minifying(tmp_path, BUG.format("compile_error") + LAYERS, backend="aot")
    stopped = bench.minified(Sought(), budget=Budget(calls=3))
    assert stopped.reproduced, stopped.printed
    assert not stopped.minimal
    assert "3 tries are used up" in stopped.guarantee
    assert 1 < stopped.size <= 9
    found = bench.minified(Sought())
    assert found.reproduced, found.printed
    assert (found.size, found.whole, found.minimal, found.known) == (1, 9, True, 2)  # the whole is tried anew
    assert found.signature.type == "CppCompileError"
    assert "relu(" in Path(found.path).read_text()
    assert found.lines < 80, Path(found.path).read_text()
    assert all(event.progress.whole == 9 for event in bench.progress)
    again = bench.minified(Sought())
    assert again.reproduced
    assert (again.known, again.calls) == (found.known + found.calls - 1, 1)


@pytest.mark.slow
def test_a_wrong_result_begins_at_the_accused_kernel(tmp_path: Path) -> None:
    bench = Minifying(
        tmp_path, BUG.format("accuracy") + LAYERS, Comparison(per_kernel=True, backward=False), backend="inductor"
    )
    found = bench.minified(Sought("wrong"))
    assert found.reproduced, found.printed
    assert (found.size, found.signature.message) == (1, "values")
    assert "relu(" in Path(found.path).read_text()
    assert bench.progress[0].progress.doing == "what the accused kernel computes"


@pytest.mark.slow
def test_what_does_not_fail_is_said_so(tmp_path: Path) -> None:
    bench = Minifying(tmp_path, LAYERS, Comparison(), backend="inductor")
    graph = bench.graph("dynamo")
    told = bench.minified(Sought("node", node=NodeId(graph.id, "x_3")))
    assert (told.signature.kind, told.status, told.reproduced) == ("none", 0, None), told.printed
    text = Path(told.path).read_text()
    assert "sum(" not in text
    with pytest.raises(AssertionError, match="no result that is wrong"):
        bench.minified(Sought("wrong"))
