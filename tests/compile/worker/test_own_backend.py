"""A backend that the program file itself registers can be asked for by its name."""

from pathlib import Path

import pytest

from idbg import cli
from idbg.engine.program.load import registers
from idbg.schema.programs import Program

pytestmark = pytest.mark.usefixtures("warm")

OWN = """
import torch
from torch._dynamo import register_backend


@register_backend
def mine(gm, inputs):
    return gm.forward


def program():
    return torch.nn.Linear(4, 4), (torch.randn(2, 4),)
"""
SCRIPT = OWN.partition("def program")[0] + "torch.compile(torch.sin)(torch.ones(2))\n"


@pytest.mark.slow
@pytest.mark.parametrize("text", [OWN, SCRIPT], ids=["program", "script"])
@pytest.mark.parametrize("verb", ["run", "diff"])
def test_it_compiles_the_program(text: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(text)
    assert cli.main([verb, "own.py", "--backend", "mine"]) == 0


@pytest.mark.slow
def test_a_name_that_it_does_not_register_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    assert cli.main(["run", "own.py", "--backend", "gm"]) != 0  # a word of the file, and no backend
    assert "there is no backend 'gm': the program has not registered it" in capsys.readouterr().out


def test_only_a_file_that_registers_one_is_believed(tmp_path: Path) -> None:
    own, other = tmp_path / "own.py", tmp_path / "other.py"
    own.write_text(OWN)
    other.write_text("mine = 1\n")
    assert registers(Program(str(own)), "mine") and not registers(Program(str(own)), "yours")
    assert not registers(Program(str(other)), "mine") and not registers(Program(str(tmp_path / "none.py")), "mine")


def test_a_backend_of_the_programs_own_that_gives_way_to_the_targets_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call = "torch.compile(torch.sin, backend=mine)(torch.ones(2))\n"
    (tmp_path / "own.py").write_text(OWN.partition("def program")[0] + call * 2)
    assert cli.main(["run", "own.py", "--backend", "eager"]) == 0
    said = capsys.readouterr().err
    assert said.count("asks for the backend mine, and is compiled for eager instead") == 1
