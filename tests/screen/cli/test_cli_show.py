"""`idbg show` tells what is in a session, whatever became of it."""

import json
from pathlib import Path

import pytest

from idbg import cli
from idbg.config import places
from idbg.schema.runs import fold
from tests.harness import recorded
from tests.harness.sessions import killed_session_of, session_of


@pytest.fixture(autouse=True)
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(places, "cache", lambda: tmp_path / "cache")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("IDBG_OUTPUT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "debug_artifacts"


@pytest.mark.parametrize("name", ["planted", "breaking", "minified", "benched"])
def test_it_says_of_each_run_what_the_run_says(name: str, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_of(name, output)
    history = fold(recorded.log(name))
    assert cli.main(["show", "last", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.show/1" and told["missing"] == []
    assert [(run["verdict"], run["violations"], run["breaks"], run["kernels"]) for run in told["runs"]] == [
        (run.verdict, run.violation_count, run.times_broken, len(run.kernels)) for run in history.runs.values()
    ]
    assert [each["path"] for each in told["repros"]] == [each.path for each in history.repros]
    assert told["measured"] == len(history.rows)
    assert history.worker is not None and told["torch"] == history.worker.torch


def test_the_text_has_verdict_program_and_runs(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = session_of("planted", output)
    assert cli.main(["show", folder.name]) == 0
    written = capsys.readouterr()
    assert written.out.splitlines()[0] == f"✘ 1 of 2 tensors wrong   {folder.name}"
    assert f"folder    {folder}" in written.out and "tests/recordings/planted.py" in written.out
    assert f"idbg open {folder.name}" in written.err


def test_a_damaged_one_says_what_is_missing(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = killed_session_of("planted", output) / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:9], b"rubbish\n", *lines[9:]]))
    assert cli.main(["show", "killed"]) == 0
    assert "missing   the session's log is not whole: line 10 is damaged" in capsys.readouterr().out


def test_the_report_of_one_run_is_that_of_idbg_run(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session_of("breaking", output)
    assert cli.main(["show", "last", "--run", "1"]) == 0
    assert "graph break at tests/recordings/breaking.py:10" in capsys.readouterr().out
    assert cli.main(["show", "last", "--run", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "idbg.run/1"
    assert cli.main(["show", "last", "--run", "9"]) == 2
    assert "has no run 9\n  it has 1" in capsys.readouterr().err


def test_what_a_terminal_would_obey_stays_text(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = killed_session_of("breaking", output) / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"breaking.py", rb"\u001b[2J\u202e.py"))
    for flags in (["show", "killed"], ["show", "killed", "--run", "1"], ["list"]):
        assert cli.main(flags) == 0
        written = capsys.readouterr().out
        assert "\x1b" not in written and "\u202e" not in written and "\\x1b[2J" in written


@pytest.mark.parametrize("name", ["r.md", "r.json", "r.html"])
def test_a_report_of_a_damaged_session_says_so(name: str, output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = killed_session_of("planted", output) / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:9], b"rubbish\n", *lines[9:]]))
    assert cli.main(["report", "killed", "-o", name]) == 0
    assert "killed: the session's log is not whole: line 10 is damaged" in capsys.readouterr().err
    assert "is not whole: line 10 is damaged" in Path(name).read_text()
