"""`idbg diff --owner KERNEL`: whose a kernel's error is, with a script that shows it without idbg."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from idbg import cli

pytestmark = pytest.mark.slow

WRONG = """
import torch
from torch._inductor.graph import GraphLowering
codegen = GraphLowering.codegen
def edited(graph):
    code, kernels = codegen(graph)
    code.value = code.value.replace("1.7773", "1.9773")
    return code, kernels
GraphLowering.codegen = edited
def program():
    return lambda x: (x * 1.7773).sin() @ x, (torch.randn(64, 64),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "model.py").write_text(WRONG)
    return tmp_path


def test_the_first_bad_kernels_owner_is_told_and_its_script_shows_it_without_us(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["diff", "model.py", "--owner", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    (owner,) = told["owners"]
    assert (owner["kind"], owner["launch"], owner["status"]) == ("compiler", told["first_bad_kernel"], 1), owner
    assert owner["error"] > 0.01 > 1e-5 > owner["eager_error"]
    script = Path(owner["script"])
    assert {file.name for file in script.parent.iterdir()} == {"repro.py", "tensors.safetensors"}
    assert "idbg" not in "\n".join(line for line in script.read_text().splitlines() if "import" in line)
    alone = [sys.executable, "-c", f"import sys; sys.modules['idbg'] = None; exec(open({str(script)!r}).read(), G)"]
    alone[2] = alone[2].replace(", G)", f", {{'__name__': '__main__', '__file__': {str(script)!r}}})")
    done = subprocess.run(alone, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith("WRONG: "), done.stderr
    text = script.read_text()
    assert "1.9773" in text
    script.write_text(text.replace("1.9773", "1.7773"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("right: "), done.stderr


def test_a_kernel_that_is_not_there_gets_a_suggestion_below_what_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["diff", "model.py", "--owner", "extern_kernels.mn"]) == 2
    told = capsys.readouterr()
    assert "kernel launches" in told.out and "did you mean extern_kernels.mm?" in told.err
