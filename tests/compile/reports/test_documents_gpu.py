"""What happened on a GPU is handed over in every format; a test that compiles for one is watched in its own process."""

import json
from pathlib import Path

import pytest
import torch

import idbg
from idbg import cli
from idbg.reports.documents import document, formats
from idbg.schema.programs import Program
from idbg.session.session import Session
from idbg.testing import Found, Watcher

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

PROGRAM = """
import torch


def program():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))
    return model.cuda(), (torch.randn(8, 64, device="cuda"),)
"""


def test_each_format_tells_the_kernels_and_the_comparison_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("on_gpu.py").write_text(PROGRAM)
    assert cli.main(["diff", "on_gpu.py", "--per-kernel", "--fail-on", "mismatch"]) == 0
    capsys.readouterr()
    assert cli.main(["list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["sessions"]
    assert listed["verdict"] == "clean" and listed["kernels"] > 0
    with Session.open(Path(listed["folder"])) as saved:
        assert saved.history.last is not None
        kernels = [kernel.name for kernel in saved.history.last.kernels if kernel.language == "triton"]
    assert kernels
    for name in formats():
        told = idbg.report(listed["folder"], f"out/report{document(name).SUFFIXES[0]}", format=name)
        assert b"on_gpu" in told
    page, data = Path("out/report.html").read_text(), json.loads(Path("out/report.json").read_text())
    for kernel in kernels:
        assert kernel in page and kernel in json.dumps(data)
    assert "tl.load" in Path("out/report.json").read_text()


def test_what_a_test_compiles_for_a_gpu_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    watcher = Watcher(Program("test_it.py", name=":test_it", cwd=str(tmp_path)), tmp_path / "kept", "test_it")

    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() + 1
        print("between two graphs")
        return y * 2

    try:
        with pytest.raises(Found, match="break"), watcher.watched():
            torch.compile(broken)(torch.ones(64, device="cuda"))
        assert watcher.recording.folder is not None
        folder = watcher.recording.folder
    finally:
        watcher.close()
        torch._dynamo.reset()
    with Session.open(folder) as saved:
        assert saved.history.last is not None
        assert [kernel.language for kernel in saved.history.last.kernels].count("triton") >= 2
