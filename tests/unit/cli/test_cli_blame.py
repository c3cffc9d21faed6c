"""`idbg diff --per-kernel` on real compiles: one sentence and one table say where the numbers go wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("warm")

ROOT = Path(__file__).parents[3]
WRONG_PASS = ROOT / "tests" / "recordings" / "wrong_pass.py"
BACKEND = """
import torch
from torch._dynamo import register_backend

@register_backend
def sloppy(gm, inputs):
    for node in list(gm.graph.nodes):
        if node.target == "exp":
            with gm.graph.inserting_after(node):
                far = gm.graph.call_function(torch.mul, (node, 1.01))
            node.replace_all_uses_with(far)
            far.args = (node, 1.01)
    gm.recompile()
    return gm.forward

def model(x):
    near = x.sin()
    far = near.exp()
    return far * 2

def program():
    return model, (torch.randn(8, 16),)
"""


def idbg(folder: Path, *args: str) -> tuple[int, str]:
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}/core:{ROOT}"}
    command = [sys.executable, "-m", "idbg", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environ, check=False)
    return done.returncode, done.stdout


@pytest.mark.slow
def test_a_wrong_pass_is_named_in_text_and_in_json_and_the_kernels_are_faithful(tmp_path: Path) -> None:
    program = tmp_path / "plant.py"
    program.write_text(WRONG_PASS.read_text())
    told = "wrong since post-grad: `mul` (plant.py:29), made by post_grad_custom_post_pass; kernels are faithful"
    status, text = idbg(tmp_path, "diff", "plant.py", "--per-kernel")
    assert status == 1 and text.splitlines()[1] == told
    assert all(len(line) <= 80 for line in text.splitlines() if line.startswith(("  ✔", "  ✘ post", "  →", "  ·")))
    status, text = idbg(tmp_path, "diff", "plant.py", "--per-kernel", "--json")
    report = json.loads(text)
    assert status == 1 and report["blame"] == told
    (guilty,) = (stage for stage in report["stages"] if stage["bad"])
    assert (guilty["stage"], guilty["node"], guilty["line"]) == ("post_grad", "mul", 29)
    assert guilty["made_by"]["kind"] == "pass" and guilty["made_by"]["file"] == str(program)
    assert "aten.mul.Tensor(addmm, 0.5003)" in guilty["made_by"]["diff"]
    assert {kernel["faithful_to"] for kernel in report["kernels"]} == {"post_grad"}


@pytest.mark.slow
def test_a_plain_comparison_that_fails_names_the_option_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "plant.py").write_text(WRONG_PASS.read_text())
    status, text = idbg(tmp_path, "diff", "plant.py")
    assert status == 1
    assert "--per-kernel says which stage, node, pass or kernel" in text.splitlines()[1]


@pytest.mark.slow
def test_the_wrong_op_of_a_backend_of_others_is_told_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BACKEND)
    status, text = idbg(tmp_path, "diff", "net.py", "--backend", "sloppy", "--per-kernel")
    lines = text.splitlines()
    assert status == 1 and lines[1] == "wrong since sloppy: `far` (net.py:18)"
    assert [line.split()[:2] for line in lines[4:6]] == [["✔", "dynamo"], ["✘", "sloppy"]]


@pytest.mark.slow
def test_a_right_program_shows_its_stages_and_blames_nothing(tmp_path: Path) -> None:
    # another uuid: Inductor's cache gives what the pass of this one made before
    text = WRONG_PASS.read_text().replace("0.5003", "0.5").replace('return "wrong"', 'return "right"')
    (tmp_path / "right.py").write_text(text)
    status, text = idbg(tmp_path, "diff", "right.py", "--per-kernel")
    assert status == 0 and text.splitlines()[0].startswith("✔ passed") and "✘" not in text
    assert "✔ post-grad" in text and "wrong" not in text
