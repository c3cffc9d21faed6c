"""Compilers of others, by the names that they have in torch: run, compared, measured, and on the screen.

OpenVINO computes in bf16 where the processor can, unless it is told not to: a comparison that says nothing of it lies.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.harness.terminal import Terminal

BACKENDS = ("openvino", "turbine_cpu")
NO_PRECISION = ("--option", "config.INFERENCE_PRECISION_HINT=7")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 128), nn.Linear(128, 16)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        return self.second(torch.relu(hidden))


def program() -> tuple[nn.Module, tuple[Tensor]]:
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(8, 64),)
"""
FIRST_LINEAR = PROGRAM.split("\n").index("        hidden = self.first(x)") + 1
PRECISIONS = "import openvino; print(*openvino.Core().get_property('CPU', 'OPTIMIZATION_CAPABILITIES'))"

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(PROGRAM)
    (tmp_path / "settings.toml").touch()
    return tmp_path


@pytest.fixture
def screen(folder: Path) -> Iterator[Callable[[str], Terminal]]:
    opened: list[Terminal] = []

    def open_(backend: str) -> Terminal:
        command = [sys.executable, "-m", "idbg_tui", "--output", str(folder / "out"), "--backend", backend, "net.py"]
        env = {"IDBG_SETTINGS": str(folder / "settings.toml"), "IDBG_EDITOR": "true"}
        opened.append(Terminal(command, cwd=folder, env=env))
        return opened[-1]

    yield open_
    for terminal in opened:
        terminal.close()


@cache
def in_bf16(backend: str) -> bool:
    """Whether the backend rounds to bf16 by itself on this processor."""
    if backend != "openvino":
        return False
    done = subprocess.run([sys.executable, "-c", PRECISIONS], capture_output=True, text=True, check=True)
    return "BF16" in done.stdout.split()


def idbg(folder: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    """The exit status, and what it prints as JSON."""
    command = [sys.executable, "-m", "idbg", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_has_the_graphs_that_the_backend_was_given(folder: Path, backend: str) -> None:
    status, report = idbg(folder, "run", "net.py", "--backend", backend)
    assert (status, report["error"]) == (0, None)
    (dynamo, *_) = report["frames"][0]["graphs"]  # type: ignore[index]
    assert dynamo["stage"] == "dynamo" and "hidden" in [node["name"] for node in dynamo["nodes"]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_comparison_names_the_first_node_that_is_rounded(folder: Path, backend: str) -> None:
    status, report = idbg(folder, "diff", "net.py", "--backend", backend, "--per-kernel")
    if not in_bf16(backend):
        assert (status, report["verdict"], report["kernels"]) == (0, "passed", [])
        return
    assert (status, report["verdict"], report["first_bad_kernel"]) == (1, "failed", 0)
    (bad,) = report["kernels"]  # type: ignore[misc]
    assert (bad["node"], Path(bad["file"]).name, bad["line"]) == ("hidden", "net.py", FIRST_LINEAR)
    assert 2**-12 < bad["error"] < 2**-7 and bad["input_error"] == 0


def test_an_option_reaches_the_backend_that_it_is_for(folder: Path) -> None:
    precise = ("--option", "config.INFERENCE_PRECISION_HINT=f32")
    status, report = idbg(folder, "diff", "net.py", "--backend", "openvino", *precise)
    assert (status, report["verdict"]) == (0, "passed")


@pytest.mark.parametrize("command", ["run", "diff"])
def test_a_graph_that_openvino_gave_up_unseen_is_a_failure(folder: Path, command: str) -> None:
    status, report = idbg(folder, command, "net.py", "--backend", "openvino", *NO_PRECISION)
    assert (status, report["verdict"]) == (1, "error" if command == "diff" else "failed")


SPLIT = """\
import openvino.frontend.pytorch.torchdynamo.execute as execute
import openvino.torch
import torch
from torch import nn

own = execute.openvino_compile


def without_softmax(gm, *args, **kwargs):
    if any("softmax" in str(node.target) for node in gm.graph.nodes):
        raise RuntimeError("no kernel for SoftMax-1")
    return own(gm, *args, **kwargs)


execute.openvino_compile = without_softmax


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(24, 48), nn.Linear(48, 8)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        hidden = torch.special.bessel_j0(hidden)
        return self.last(hidden).softmax(-1)


compiled = torch.compile(Net().eval(), backend="openvino")
with torch.no_grad():
    for _ in range(3):
        compiled(torch.randn(16, 24))
"""
BESSEL = SPLIT.split("\n").index("        hidden = torch.special.bessel_j0(hidden)") + 1


def test_what_openvino_leaves_to_eager_is_named_with_its_reason_and_its_share(folder: Path) -> None:
    (folder / "split.py").write_text(SPLIT)
    status, report = idbg(folder, "run", "split.py", "--output", "out")
    assert (status, report["verdict"]) == (1, "failed") and "no kernel for SoftMax-1" in str(report["frame_failures"])
    _, analyzed = idbg(folder, "analyze", next(str(each) for each in (folder / "out").iterdir()), "--type", "splits")
    (split,) = analyzed["splits"]  # type: ignore[misc]
    assert split["backend"] == "openvino" and [len(names) for names in split["compiled"]] == [3, 3]
    (native,) = split["native"]
    assert (native["target"], native["why"]) == ("aten.special_bessel_j0.default", "unsupported")
    assert (Path(native["file"]).name, native["line"]) == ("split.py", BESSEL)
    (failed,) = split["calls"]["failed"]
    assert failed[0] == 1 and "no kernel for SoftMax-1" in failed[1]
    assert split["calls"]["calls"] == 2 and 0 < split["calls"]["native_seconds"] < split["calls"]["seconds"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_benchmark_measures_it_and_says_whether_its_numbers_agree(folder: Path, backend: str) -> None:
    given = ("net.py", "--backend", backend, "--runs", "5", "--database", "rows.sqlite")
    status, report = idbg(folder, "bench", *given)
    (row,) = report["rows"]  # type: ignore[misc]
    assert row["status"] == "ok" and row["latency_ms"]["median"] > 0 and row["cold_compile_s"] > 0
    assert (row["diff"], status) == (("failed", 1) if in_bf16(backend) else ("passed", 0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_screen_shows_the_graph_and_what_the_comparison_found(
    screen: Callable[[str], Terminal], backend: str
) -> None:
    terminal = screen(backend)
    terminal.until(lambda text: "hidden" in text and f" {backend} " in text.splitlines()[0], 120)
    terminal.until("1 frame", 120)
    terminal.press("D", "5")
    if in_bf16(backend):
        terminal.until(lambda text: "1 tensor failed" in text and f"wrong since {backend}: `hidden`" in text, 120)
    else:
        terminal.until(lambda text: "passed" in text and f"{backend} against eager" in text, 120)
    terminal.press("q")
    assert terminal.wait() == 0, terminal.text
