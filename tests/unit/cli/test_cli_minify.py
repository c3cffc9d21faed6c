"""`idbg minify`: what is looked for, how far it is, what came of it, and what Ctrl+C keeps. The worker has no torch."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import idbg.cli.one_run
from idbg import cli
from idbg.schema import events
from idbg.schema.repros import Budget, Sought
from idbg.session import reading
from idbg.session.session import Session
from tests.harness.fake_sessions import FAKE_CHILD

PATH = os.pathsep.join([str(Path(idbg.cli.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
MAIN = f"""
import functools, sys, idbg.cli.one_run
from idbg import cli
from idbg.session.session import Session
idbg.cli.one_run.Session = functools.partial(Session, command=(sys.executable, {str(FAKE_CHILD)!r}))
sys.exit(cli.main())
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, a worker without torch, and no settings of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fake = functools.partial(Session, command=(sys.executable, str(FAKE_CHILD)))
    monkeypatch.setattr(idbg.cli.one_run, "Session", fake)
    for how in ("print", "fail", "violate", "search", "search_for_good", "search_in_vain", "no_backend"):
        (tmp_path / f"{how}.py").write_text("")
    return tmp_path


def sought() -> Sought:
    """What the last session was asked to look for."""
    folder = max(Path("debug_artifacts").iterdir(), key=lambda each: each.stat().st_mtime)
    (begun,) = [event for event in reading.load(folder) if isinstance(event, events.MinifyStarted)]
    return begun.sought


def test_a_failed_run_is_made_smaller_and_the_script_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", "fail.py"]) == 1
    told = capsys.readouterr()
    assert "3 of 9 nodes, 28 lines; it fails again in a fresh process (LoweringException: no lowering" in told.out
    assert "1-minimal: no node can be left out; 2 tries in 0.5 s; 2 other failures were met" in told.out
    assert "min/repro.py" in told.out
    assert "prefix: 9 of 9 nodes; 1 of 300 tries" in told.err and "session: " in told.err
    assert sought() == Sought()


def test_the_result_as_json_is_all_there_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", "violate.py", "--rule", "alignment", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["verdict"]) == ("idbg.minify/1", "violations")
    repro = told["repro"]
    assert (repro["rule"], repro["node"], repro["stage"]) == ("alignment", "mul", "dynamo")
    assert (repro["status"], repro["exit_status"], repro["origin"]) == ("reproduces", 1, "minified")
    found = repro["found"]
    assert (found["size"], found["whole"], found["minimal"], found["calls"]) == (3, 9, True, 2)
    assert found["others"] == [{"signature": "RuntimeError: x", "count": 2, "path": ""}]


def test_where_nothing_fails_it_says_so_and_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", "print.py"]) == 0
    assert "nothing fails: print.py compiles and runs with inductor" in capsys.readouterr().out
    assert cli.main(["minify", "print.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["repro"] is None


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (["--check", "python check.py"], Sought("check", command=("python", "check.py"))),
        (["--break"], Sought("break")),
        (["--break", "m.py:3"], Sought("break", place="m.py:3")),
        (["--recompile"], Sought("recompile")),
    ],
)
def test_an_option_says_which_failure(flags: list[str], kind: Sought) -> None:
    assert cli.main(["minify", "print.py", *flags]) == 1
    assert sought() == kind


def test_the_files_that_a_command_names_are_found_from_any_folder(folder: Path) -> None:
    (folder / "check.py").write_text("")
    assert cli.main(["minify", "print.py", "--check", "python check.py --hard"]) == 1
    assert sought().command == ("python", str(folder / "check.py"), "--hard")


@pytest.mark.parametrize("flags", [[], ["--violation", "1"], ["--rule", "alignment"], ["--node", "dynamo:mul"]])
def test_a_violation_is_named_by_number_rule_or_node(flags: list[str]) -> None:
    assert cli.main(["minify", "violate.py", *flags]) == 1
    asked = sought()
    assert (asked.kind, asked.rule, asked.node and asked.node.name) == ("violation", "alignment", "mul")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["violate.py", "--violation", "9"], "there is no violation 9: the run has 1 violation"),
        (["violate.py", "--violation", "0"], "there is no violation 0"),
        (["violate.py", "--rule", "alignmnt"], "did you mean alignment?"),
        (["violate.py", "--rule", "alignment", "--node", "relu"], "the node 'relu' does not break alignment"),
        (["print.py", "--rule", "alignment"], "the run breaks no rule"),
        (["print.py", "--node", "relu"], "no graph of the run has a node 'relu'"),
        (["fail.py", "--break", "--recompile"], "--break and --recompile name different failures"),
        (["fail.py", "--check", " "], "--check names no command"),
        (["fail.py", "--check", "a 'b"], "No closing quotation"),
        (["fail.py", "--calls", "0"], "--calls is 0"),
        (["fail.py", "--seconds", "nan"], "--seconds is nan"),
        (["fail.py", "--memory", "lots"], "is no number of bytes"),
        (["nope.py"], "no file nope.py"),
    ],
)
def test_bad_usage_is_one_clear_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", *arguments]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.out == "" and "Traceback" not in told.err


def test_the_budget_is_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Budget | None, bool]] = []
    minify = Session.minify

    def heard(session: Session, sought: Sought, budget: Budget | None = None, *, keep_data: bool = True) -> None:
        asked.append((budget, keep_data))
        minify(session, sought, budget, keep_data=keep_data)

    monkeypatch.setattr(Session, "minify", heard)
    assert cli.main(["minify", "fail.py", "--calls", "7", "--seconds", "9", "--memory", "4G", "--no-data"]) == 1
    assert asked == [(Budget(7, 9.0, 0.0, 4 << 30), False)]


def test_what_was_not_seen_to_fail_again_has_a_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", "search_in_vain.py"]) == 3
    told = capsys.readouterr().out
    assert "it was not seen to fail again" in told and "try once more" in told and "min/repro.py" in told


def test_what_cannot_begin_is_bad_usage() -> None:
    assert cli.main(["minify", "no_backend.py"]) == 2


def stopped(program: str, signals: int) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a search that was sent so many SIGINTs."""
    command = [sys.executable, "-c", MAIN, "minify", program]
    environ = dict(os.environ, PYTHONPATH=PATH)
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)
    assert process.stderr is not None
    while "3 of 9 nodes" not in process.stderr.readline():
        pass
    for _ in range(signals):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_once_keeps_the_smallest_script_and_says_what_stopped_the_search() -> None:
    status, out, err = stopped("search.py", 1)
    assert status == 130
    assert "stopping: the smallest failing script is kept" in err
    assert "stopped before it was known to be minimal" in out and "min/repro.py" in out


def test_ctrl_c_twice_kills_and_still_names_what_had_failed() -> None:
    status, out, _ = stopped("search_for_good.py", 2)
    assert status == 130
    assert "not run in a fresh process" in out and "min/repro.py" in out


def test_a_report_and_one_file_to_send_are_made_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["minify", "fail.py", "--markdown", "--zip"]) == 1
    told = capsys.readouterr().err
    (report,) = Path("debug_artifacts").rglob("report.md")
    text = report.read_text()
    assert "### 🐛 Describe the bug" in text and "### Error logs" in text and "torch 9.9" in text
    assert "print('REPRODUCED')  # ```" in text
    (packed,) = Path("debug_artifacts").rglob("*.zip")
    with zipfile.ZipFile(packed) as held:
        assert held.namelist() == ["min/repro.py", "min/README.md", "min/report.md"]
    assert f"report: {report}" in told and f"packed: {packed}" in told


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    assert cli.main(["minify", "fail.py", "--zip"]) == 2
    out, told = capsys.readouterr()
    assert "it fails again" in out
    assert "min.zip cannot be written: No space left on device" in told and "Traceback" not in told
    assert not list(Path("debug_artifacts").rglob("*.zip"))
