"""On a GPU: a Triton kernel that does not compile, one that is wrong, and one that reads where nothing is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]

NET = """
import torch
import torch._inductor.config as config
config.triton.inject_relu_bug_TESTING_ONLY = {bug!r}
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
    def forward(self, x):
        x = torch.sin(self.a(x))
        return (self.b(torch.relu(x)) * 2).sum(-1)
def program():
    torch.manual_seed(0)
    return Net().cuda(), (torch.randn(16, 64, device="cuda"),)
"""
FAR = """
import torch
import torch._inductor.config as config
config.assert_indirect_indexing = False
table = torch.randn(1000, 64, device="cuda")
def look(x, places):
    return (torch.sin(x) + 1).sum() + torch.cos(table)[places].mul(2).sum()
def program():
    torch.manual_seed(0)
    return look, (torch.randn(16, 64, device="cuda"), torch.full((4096,), 2**30, device="cuda"))
"""


def minified(folder: Path, text: str, *options: str) -> dict:
    path = folder / "subject.py"
    path.write_text(text)
    command = [sys.executable, "-m", "idbg", "minify", str(path), "--json", "--output", str(folder / "out"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=folder)
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads(done.stdout)["repro"]["found"]
    print(f"{told['calls']} tries in {told['seconds']:.0f} s")
    print(done.stderr)
    print(Path(told["path"]).read_text())
    return told


def test_a_kernel_that_triton_does_not_compile(tmp_path: Path) -> None:
    found = minified(tmp_path, NET.format(bug="compile_error"))
    assert found["reproduced"], found
    assert found["size"] == 1
    assert "relu(" in Path(found["path"]).read_text()


def test_a_kernel_that_is_wrong(tmp_path: Path) -> None:
    found = minified(tmp_path, NET.format(bug="accuracy"), "--wrong")
    assert found["reproduced"], found
    assert found["size"] == 1
    assert found["signature"]["kind"] == "wrong"
    assert "relu(" in Path(found["path"]).read_text()


def test_an_illegal_memory_access(tmp_path: Path) -> None:
    found = minified(tmp_path, FAR)
    assert found["reproduced"], found
    assert "illegal memory access" in found["signature"]["message"] or "device-side" in found["signature"]["message"]
    assert found["size"] <= 2
    code = [line.partition("#")[0] for line in Path(found["path"]).read_text().splitlines()]
    assert not any("sin(" in line for line in code), "a comment may quote it"
