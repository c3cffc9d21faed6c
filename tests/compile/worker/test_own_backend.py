"""A backend that the program itself defines compiles it: by its name, or where nobody chose another."""

import functools
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from idbg import cli
from idbg.engine.program.load import registers
from idbg.engine.repro.definitions import Needed, definitions_for, named
from idbg.schema.programs import Program, Target

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


UNCHOSEN = """
import torch


def mine(gm, inputs, *, options=None):
    print("mine was called with", options)
    HOW


def net(x):
    return torch.erfinv(torch.tanh(x + 1)) * 2


torch.compile(net, backend=mine, options={"level": 3})(torch.randn(3, 17))
"""
WRONG = "return lambda *args: tuple(each * 1.5 for each in gm.forward(*args))"
RAISES = """for node in gm.graph.nodes:
        if "erfinv" in str(node.target):
            raise NotImplementedError("this device has no inverse error function")
    return gm.forward"""


def unchosen(folder: Path, how: str, monkeypatch: pytest.MonkeyPatch, *command: str) -> int:
    monkeypatch.chdir(folder)
    (folder / "own.py").write_text(UNCHOSEN.replace("HOW", how))
    return cli.main([command[0], "own.py", *command[1:]])


def test_it_is_called_with_its_options_where_nobody_chose_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unchosen(tmp_path, "return gm.forward", monkeypatch, "run") == 0
    said = capsys.readouterr()
    assert "mine was called with {'level': 3}" in said.out + said.err
    assert " mine · cpu" in said.out and "instead" not in said.err


@pytest.mark.slow
def test_its_numbers_are_those_that_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unchosen(tmp_path, WRONG, monkeypatch, "diff") == 1
    assert "mine" in capsys.readouterr().out
    assert unchosen(tmp_path, WRONG, monkeypatch, "diff", "--backend", "eager") == 0


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["repro", "minify"])
def test_what_it_raises_is_its_own_and_a_script_carries_it(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unchosen(tmp_path, RAISES, monkeypatch, verb) == 1
    (script,) = tmp_path.glob("debug_artifacts/*/repros/*/repro.py")
    assert ("backend=mine, options={'level': 3}" if verb == "repro" else "backend=mine") in script.read_text()
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "REPRODUCED NotImplementedError" in done.stdout
    capsys.readouterr()
    assert unchosen(tmp_path, RAISES, monkeypatch, "run") == 1
    assert "the program's own backend raised this" in capsys.readouterr().out


def test_a_target_of_a_session_that_has_no_such_field_was_compiled_by_its_backend() -> None:
    assert not msgspec.json.decode(b'{"backend": "inductor"}', type=Target).own_backend


def a_compiler(gm: object, inputs: object, level: int = 0) -> object:
    return gm


OF_A_LAMBDA = aot_autograd(fw_compiler=lambda gm, inputs: a_compiler(gm, inputs, level=3))


def test_a_backend_that_is_made_of_a_lambda_comes_along_with_its_own_statement() -> None:
    assert named(OF_A_LAMBDA) == "OF_A_LAMBDA"
    sources = definitions_for(Needed(objects=(OF_A_LAMBDA,))).sources
    assert any(each.startswith("OF_A_LAMBDA = aot_autograd(") for each in sources)
    assert any(each.startswith("def a_compiler(") for each in sources)
    with pytest.raises(ValueError, match=r"a lambda of .* has no name"):
        named(aot_autograd(fw_compiler=lambda gm, inputs: gm))


def test_a_backend_that_a_library_makes_is_spelled_as_the_call_that_makes_it() -> None:
    made = aot_autograd(
        fw_compiler=functools.partial(a_compiler, level=2), partition_fn=min_cut_rematerialization_partition
    )
    assert named(made) == (
        "torch._dynamo.backends.common.aot_autograd(fw_compiler=functools.partial(a_compiler, level=2), "
        "partition_fn=torch._functorch.partitioners.min_cut_rematerialization_partition)"
    )
