"""A repro stands alone: in a fresh process it shows the same failure, with the program's own values."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from idbg.accelerators import registry
from idbg.engine.minify.forks.outcome import TryResult
from idbg.schema import events
from idbg.schema.graphs import NodeId
from idbg.schema.programs import Program, Target
from idbg.schema.repros import Sought
from idbg.schema.session_repros import SessionRepro
from idbg.views.repros import written_lines
from idbg.worker.jobs import Jobs
from idbg.worker.protocol import Compile, WriteRepro

BLOCK = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3)

    def forward(self, x):
        return self.conv(x.relu()).transpose(2, 3) + 1

def program():
    torch.manual_seed(0)
    return Net(), (torch.arange(-32.0, 32.0).reshape(1, 1, 8, 8),), lambda out: out.sum()
"""


class Bench:
    """One program compiled in this process, and repros of it."""

    def __init__(self, folder: Path, text: str, rules: str = "", **target: Any) -> None:
        self.told: list[events.SessionEvent] = []
        self.folder = folder
        self.jobs = Jobs(self.told.append)
        path = folder / "subject.py"
        path.write_text(text)
        rules = rules or registry.find("mock")[0]
        request = Compile(1, Program(str(path), cwd=str(folder)), Target(rules=rules, **target), str(folder / "repros"))
        self.ended = self.jobs.compile(request)

    @property
    def violations(self):
        return [
            violation for told in self.told if isinstance(told, events.ViolationsFound) for violation in told.violations
        ]

    def repro(self, node: NodeId | None = None, rule: str = "") -> events.ReproEnded:
        ended = self.jobs.do(WriteRepro(1, str(self.folder / "repros"), node, rule))
        assert isinstance(ended, events.ReproEnded)
        return ended


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, BLOCK, backend="mock")


@pytest.mark.parametrize("stage", ["dynamo", "forward", "backward"])
def test_a_violation_at_any_stage_reproduces(bench: Bench, stage: str):
    violation = next(found for found in bench.violations if found.node.graph.stage == stage)
    ended = bench.repro(violation.node, violation.rule)
    assert ended.failure is None, ended.failure
    assert (ended.reproduced, ended.status) == (True, 1), ended.output
    assert f"REPRODUCED {violation.rule}" in ended.output


def test_it_holds_the_node_alone_with_the_values_that_it_had(bench: Bench):
    violation = next(found for found in bench.violations if found.node.name == "conv2d")
    path = Path(bench.repro(violation.node, violation.rule).path)
    body = path.read_text().partition("def program(")[2].partition("def inputs")[0]
    assert body.count(" = ") == 1
    saved = load_file(path.parent / "tensors.safetensors")
    assert len(saved) == 3
    relu = torch.arange(-32.0, 32.0).relu()
    assert any(torch.equal(value, relu) for value in saved.values()), "the input is the relu of the program's own"


def test_an_overlapping_or_transposed_input_comes_back_with_its_strides(tmp_path: Path):
    text = "import torch\ndef program():\n    return (lambda x: x + 1), torch.arange(6.0).reshape(2, 3).t()\n"
    bench = Bench(tmp_path, text, backend="mock")
    violation = next(found for found in bench.violations if found.rule == "layout")
    ended = bench.repro(violation.node, violation.rule)
    assert ended.reproduced, ended.output
    assert "(1, 3)" in Path(ended.path).read_text()


def test_a_repro_whose_cause_is_gone_exits_zero(bench: Bench):
    violation = next(found for found in bench.violations if found.rule == "unsupported_ops")
    path = Path(bench.repro(violation.node, violation.rule).path)
    text = path.read_text()
    assert "relu_" in text, "the rule is in the script"
    path.write_text(text.replace('kind = "unsupported_ops"', 'kind = "unsupported_ops"\nenabled = false'))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_script_in_which_nothing_fails_is_not_presented(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("idbg.worker.jobs._run", lambda path: TryResult(0, printed="fine"))
    violation = next(found for found in bench.violations if found.rule == "unsupported_ops")
    ended = bench.repro(violation.node, violation.rule)
    assert (ended.path, ended.reproduced, ended.status, ended.output) == ("", False, 0, "fine")
    assert ended.failure is not None and "nothing fails in it" in ended.failure.message and ended.failure.hint
    assert not list(bench.folder.rglob("repro.py"))


@pytest.mark.slow
def test_a_failed_compile_reproduces_with_its_backward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "/bin/false")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    with torch._inductor.config.patch({"cpp.cxx": (None, "/bin/false")}):
        bench = Bench(tmp_path, BLOCK)
    assert bench.ended.verdict == "failed"
    assert bench.ended.failure.kind == "torch"
    ended = bench.repro()
    assert ended.failure is None, ended.failure
    assert ended.reproduced, ended.output
    assert Path(ended.path).read_text().count(".requires_grad_()") == 2


def test_what_has_no_repro_says_why(bench: Bench, tmp_path: Path):
    missing = bench.repro(NodeId(bench.violations[0].node.graph, "nowhere"), "layout")
    assert missing.path == ""
    assert "holds no node nowhere" in missing.failure.message
    assert "idbg repro --list" in missing.failure.hint
    assert "did not fail" in bench.repro().failure.message
    broken = Bench(tmp_path, "def program():\n    raise ValueError('mine')\n")
    assert "the program itself raised it (ValueError: mine)" in broken.repro().failure.message
    assert "idbg minify looks for" in broken.repro().failure.hint


MARKED = """\
import torch

def f(x):
    return x.sin() if x.shape[0] == 4 else x

x = torch.ones(4, 3)
torch._dynamo.mark_dynamic(x, 0)
torch.compile(f)(x)
"""
CLOSES = """\
import torch

def backend_of(held):
    def compiler(graph, inputs):
        raise RuntimeError(f"no room for {len(held)}")

    return compiler

torch.compile(torch.sin, backend=backend_of(torch.ones(3)))(torch.ones(2))
"""


@pytest.mark.parametrize(
    ("text", "how"),
    [(MARKED, {"backend": "eager"}), (CLOSES, {"own_backend": True})],
    ids=["its graph does not show it", "its backend cannot be cut out"],
)
def test_a_failure_that_no_graph_shows_is_shown_by_the_whole_program(
    tmp_path: Path, text: str, how: dict[str, Any]
) -> None:
    bench = Bench(tmp_path, text, 'name = "none"\n', **how)
    ended = bench.repro()
    assert ended.reproduced, (ended.failure, ended.output)
    assert "What is left of the program" in Path(ended.path).read_text()
    written = SessionRepro(1, 0.0, "written", Sought(), path=ended.path, reproduced=False, status=0, ended=1.0)
    assert "idbg minify looks for" in " ".join(written_lines(written)), "a script that shows nothing has a next step"


@pytest.mark.parametrize(
    "rule",
    [
        'kind = "peak_memory"\nmax_bytes = 500',
        'kind = "weights_memory"\nmax_bytes = 100',
        'kind = "dtype"\nallowed = ["float64"]\nroles = ["weights"]\ntensors = "operands"\nops = ["convolution"]',
        'kind = "alignment"\nmultiple = 16\nroles = ["intermediates"]',
    ],
)
def test_rules_about_roles_and_whole_graphs_reproduce(tmp_path: Path, rule: str) -> None:
    bench = Bench(tmp_path, BLOCK, f"[[rules]]\n{rule}\n", backend="mock")
    violation = next(found for found in bench.violations if found.node.graph.stage == "dynamo")
    ended = bench.repro(violation.node, violation.rule)
    assert ended.reproduced, (ended.failure, ended.output)


def test_a_strict_refusal_of_a_large_model_is_written_in_a_few_kilobytes(tmp_path: Path) -> None:
    text = BLOCK.replace("Conv2d(1, 4, 3)", "Conv2d(1, 4, 3)\n        self.large = torch.nn.Linear(1024, 1024)")
    text = text.replace(".transpose(2, 3) + 1", ".flatten().sum() + self.large(torch.ones(1024)).sum()")
    bench = Bench(tmp_path, text, '[[rules]]\nkind = "dtype"\nallowed = ["float16"]\n', backend="mock", strict=True)
    script = Path(bench.ended.failure.repro)
    sizes = {each.name: each.stat().st_size for each in script.parent.iterdir()}
    assert sizes["repro.py"] < 5_000
    assert sum(sizes.values()) < 100_000, "only what the node needs is saved: the model has 4 MB of weights"
