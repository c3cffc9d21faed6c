"""`idbg repro`: a script of one violation, of a program or of a saved session, and the list of what there is."""

import functools
import json
import sys
from pathlib import Path

import pytest

import idbg.cli.one_run
from idbg import cli
from idbg.session.session import Session
from tests.harness.fake_sessions import FAKE_CHILD

MODEL = """
import torch
def program():
    return torch.nn.Linear(10, 16), (torch.randn(4, 10),)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def fake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without torch, and a program for each way it behaves."""
    session = functools.partial(Session, command=(sys.executable, str(FAKE_CHILD)))
    session.open = Session.open  # type: ignore[attr-defined]
    monkeypatch.setattr(idbg.cli.one_run, "Session", session)
    for how in ("print", "fail", "violate", "misuse", "differ"):
        (folder / f"{how}.py").write_text("")


def saved(program: str) -> str:
    """The folder of a session in which the program ran once."""
    cli.main(["run", program, "--warn", "--output", "kept"])
    (folder,) = Path("kept").glob(f"{Path(program).stem}-*")
    return str(folder)


@pytest.mark.usefixtures("fake")
def test_a_sessions_violations_and_repros_are_listed_with_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    session = saved("violate.py")
    capsys.readouterr()
    assert cli.main(["repro", session, "--list"]) == 0
    told = capsys.readouterr().out
    assert "1 violation (dynamo) of run 1:" in told
    assert "   1  reject  alignment: mul [dynamo] dim 0 is 10, wanted a multiple of 16" in told
    assert "0 repros" in told
    assert cli.main(["repro", session, "--list", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == "idbg.repros/1" and report["repros"] == [] and report["repro"] is None
    (violation,) = report["violations"]
    assert (violation["number"], violation["rule"], violation["node"]) == (1, "alignment", "mul")


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("flags", [["--violation", "1"], ["--rule", "alignment"], ["--node", "mul"]])
def test_a_sessions_violation_is_written_in_a_session_of_its_own(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session = saved("violate.py")
    log = (Path(session) / "events.jsonl").read_bytes()
    capsys.readouterr()
    assert cli.main(["repro", session, *flags]) == 1
    told = capsys.readouterr()
    assert "✔ alignment at mul: reproduces" in told.out
    (new,) = Path("debug_artifacts").iterdir()
    assert f"script: {new / 'repros' / 'repro.py'}" in told.out
    assert (Path(session) / "events.jsonl").read_bytes() == log
    capsys.readouterr()
    assert cli.main(["repro", str(new), "--list"]) == 0
    assert "✔ run 1: alignment at mul  reproduces, " in capsys.readouterr().out


@pytest.mark.usefixtures("fake")
def test_a_programs_violation_is_written_too_and_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["repro", "violate.py", "--violation", "1", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["repro"]["status"] == "reproduces" and told["repro"]["path"].endswith("repro.py")
    assert cli.main(["repro", "violate.py", "--list"]) == 0
    assert "   1  reject  alignment" in capsys.readouterr().out


@pytest.mark.usefixtures("fake")
def test_without_an_option_it_is_the_failed_compile(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["repro", "fail.py"]) == 1
    assert "✔ the failure: reproduces" in capsys.readouterr().out
    assert cli.main(["repro", "print.py"]) == 0
    assert "nothing fails: print.py compiles and runs" in capsys.readouterr().out


@pytest.mark.usefixtures("fake")
def test_of_a_comparison_that_failed_it_is_the_wrong_result(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([saved("differ.py")], ["differ.py", "--wrong"]):
        capsys.readouterr()
        assert cli.main(["repro", *arguments]) == 1
        shown = capsys.readouterr().out
        assert "it fails again in a fresh process" in shown and "minified" not in shown.partition("script: ")[0]
    assert cli.main(["repro", "print.py", "--wrong"]) == 0
    assert "nothing fails" in capsys.readouterr().out


@pytest.mark.usefixtures("fake")
def test_what_is_broken_no_more_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    session = saved("violate.py")
    log = Path(session) / "events.jsonl"
    log.write_text(log.read_text().replace("violate.py", "print.py"))  # as if the program had been mended
    assert cli.main(["repro", session, "--violation", "1"]) == 0
    assert "run again, print.py does not break alignment at mul any more" in capsys.readouterr().out


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SESSION", "--violation", "7"], "there is no violation 7: the run has 1 violation"),
        (["SESSION", "--rule", "dtyp"], "the run breaks no rule called 'dtyp'"),
        (["SESSION"], "name a violation"),
        (["SESSION", "--violation", "1", "--backend", "mock"], "a session runs for its own target"),
        (["violate.py"], "name a violation"),
        (["debug_artifacts/gone-20260101-000000"], "there is no session debug_artifacts/gone-20260101-000000"),
        (["."], ". is not a session"),
        (["nope.py"], "no file nope.py"),
        (["misuse.py"], "no such function"),
    ],
)
def test_what_is_not_there_is_one_clear_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = saved("violate.py")
    capsys.readouterr()
    arguments = [session if text == "SESSION" else text for text in arguments]
    assert cli.main(["repro", *arguments]) == 2
    told = capsys.readouterr()
    assert said in told.err + told.out and "Traceback" not in told.err


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_real_sessions_violation_is_shown_again_from_another_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "model.py").write_text(MODEL)
    rules = folder / "npu.toml"
    rules.write_text('name = "npu"\n\n[[rules]]\nkind = "alignment"\nmultiple = 16\nroles = ["inputs"]\n')
    assert cli.main(["run", "model.py", "--backend", "mock", "--accelerator", str(rules), "--warn"]) == 0
    (session,) = Path("debug_artifacts").iterdir()
    session = session.absolute()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    rules.unlink()  # the session has them
    capfd.readouterr()
    assert cli.main(["repro", str(session), "--violation", "1"]) == 1
    told = capfd.readouterr().out
    assert "alignment at " in told and "reproduces (exit 1)" in told
    (script,) = Path("debug_artifacts").rglob("repro.py")
    assert str(script) in told
    (folder / "model.py").unlink()
    assert cli.main(["repro", str(session), "--violation", "1"]) == 2
    assert "model.py" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_what_strict_mode_refused_names_a_script_that_is_new_each_time(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "model.py").write_text(
        MODEL.replace("Linear(10, 16)", "Linear(10, 16).double()").replace("10)", "10).double()")
    )
    named = set()
    for _ in range(2):
        assert cli.main(["run", "model.py", "--backend", "mock", "--strict"]) == 1
        (line,) = [line for line in capfd.readouterr().out.splitlines() if "repro: " in line]
        named.add(line.partition("repro: ")[2])
    assert len(named) == 2 and all(Path(path).is_file() for path in named)
    session = Path(named.pop()).parents[2]
    assert cli.main(["repro", str(session), "--list"]) == 0
    assert "1 repro:\n  … run 1: dtype at " in capfd.readouterr().out


SWALLOWED = """
import torch
torch._dynamo.config.suppress_errors = True

@torch.library.custom_op("idbg_test::no_fake", mutates_args=())
def no_fake(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

torch.compile(lambda x: no_fake(x) + 1)(torch.ones(3))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_frame_that_failed_and_was_swallowed_is_not_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "swallowed.py").write_text(SWALLOWED)
    assert cli.main(["repro", "swallowed.py", "--backend", "eager"]) == 3
    told = capsys.readouterr()
    assert "nothing fails" not in told.out
    assert "failed before a backend had its graph" in told.out + told.err
