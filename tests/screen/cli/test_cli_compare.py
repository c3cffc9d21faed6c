"""`idbg compare`: a program with and without a switch, and two saved sessions."""

import json
from pathlib import Path

import pytest

from idbg import cli
from tests.harness.sessions import small_log

SIZES = """\
import torch
f = torch.compile(lambda x: (x.sin() + 1).cos())
for size in (3, 4, 5, 6):
    f(torch.ones(size))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "sizes.py").write_text(SIZES)
    small_log(tmp_path / "saved", at=1.0)
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["sizes.py"], "the second run has no switch"),
        (["sizes.py", "--with", "x"], "--with x: a switch is NAME=VALUE"),
        (["sizes.py", "--with", "dynamic=perhaps"], "dynamic cannot be 'perhaps'"),
        (["sizes.py", "other", "--with", "mode=lite"], "sizes.py is not a session"),
        (["."], "is not a session"),
        (["saved", "--with", "mode=lite"], "--with needs a program to run"),
        (["saved", "--sort", "banana"], "the columns are time of, before, after, change"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *argv]) != 0
    assert why in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_switch_and_what_it_changes(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    flip = ["--with", "dynamo.automatic_dynamic_shapes=false"]
    assert cli.main(["compare", "sizes.py", "--backend", "eager", *flip]) == 0
    out = capsys.readouterr().out
    assert "changed: dynamo.automatic_dynamic_shapes: default → False" in out
    assert "recompiles\n  1 → 3  <lambda>" in out
    (session,) = (folder / "debug_artifacts").iterdir()
    assert cli.main(["compare", str(session), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "idbg.compare/1"
    assert [(each["what"], each["before"], each["after"]) for each in found["recompiles"]] == [("<lambda>", 1, 3)]
    assert cli.main(["compare", str(session), str(session)]) == 0
    assert "changed: nothing, the same target" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_kernels_that_a_switch_changes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # in 80 both sources are cut before the name
    assert cli.main(["compare", "sizes.py", "--backend", "inductor", "--with", "cpp.simdlen=1", "--source"]) == 0
    out = capsys.readouterr().out
    assert "kernels: 2 → 2: " in out
    assert "of its source changed" in out
    assert "at::vec::Vectorized<float>" in out


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_switch_that_there_is_not_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "sizes.py", "--backend", "eager", "--with", "max_autotun=true"]) == 2
    assert "did you mean max_autotune?" in capsys.readouterr().err
