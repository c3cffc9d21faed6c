"""`idbg bisect`: one answer on stdout, the tries on stderr, a status that says whether somebody is guilty."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idbg import cli
from tests.harness.git_history import GitHistory, eight_commits

ROOT = Path(__file__).parents[3]
FOURTH_HANGS = """
import runpy, time
from pathlib import Path
tries = Path(__file__).with_name("tries")
tries.write_text(tries.read_text() + ".")
if len(tries.read_text()) == 4:
    time.sleep(60)
runpy.run_path("p.py")
"""


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitHistory:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = eight_commits(tmp_path / "repo")
    monkeypatch.chdir(made.folder)
    (made.folder / "p.py").write_text("")  # it need only be there
    return made


def command(history: GitHistory, *more: str) -> list[str]:
    return ["bisect", "p.py", "--good", history.names["one"], "--check", sys.executable, *more]


def test_the_answer_is_text_and_the_tries_go_to_stderr(history: GitHistory, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(command(history)) == 1
    told = capsys.readouterr()
    assert told.out.startswith(f"{history.names['five'][:10]} is the first commit that fails")
    assert "Author: Ada" in told.out
    lines = told.err.splitlines()
    assert lines[0].startswith("commit ")
    assert lines[0].endswith(" six: fails")
    assert lines[1].endswith(" one: does not fail")


def test_the_answer_is_json(history: GitHistory, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(command(history, "--json")) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "idbg.bisect/1"
    assert told["commit"]["commits"][0]["sha"] == history.names["five"]
    page = (
        (ROOT / "docs" / "json-schema.md")
        .read_text(encoding="utf-8")
        .partition("# The JSON of a bisect")[2]
        .partition("\n# ")[0]
    )
    assert set(re.findall(r"^\| `(\w+)", page, re.MULTILINE)) == set(told)
    assert {one["outcome"] for one in told["tried"]} <= {"fails", "passes", "other"}


def test_nothing_that_fails_ends_with_0(history: GitHistory, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(command(history, "--bad", history.names["four"])) == 0
    assert "it does not fail at" in capsys.readouterr().out


def test_a_command_needs_no_program(history: GitHistory, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bisect", "--good", history.names["one"], "--check", f"{sys.executable} p.py"]
    assert cli.main(asked) == 1
    assert history.names["five"][:10] in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order_and_says_what_is_known(
    history: GitHistory, number: signal.Signals, tmp_path: Path
) -> None:
    before = history.state()
    (tmp_path / "tries").write_text("")
    (tmp_path / "check.py").write_text(FOURTH_HANGS)
    asked = ["bisect", "--good", history.names["one"], "--check", f"{sys.executable} {tmp_path / 'check.py'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "idbg", *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for _ in range(3):
        process.stderr.readline()
    while process.poll() is None and len((tmp_path / "tries").read_text()) < 4:
        time.sleep(0.02)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert out.startswith("stopped after 3 tries: one of ")
    assert history.state() == before
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob(f"idbg-*-{process.pid}-*"))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["bisect"], "no program is named"),
        (["bisect", "p.py", "--bad", "HEAD"], "--bad needs a --good"),
        (["bisect", "p.py", "--good", "HEAD~1", "--fuzz", "3"], "are two searches"),
        (["bisect", "p.py", "--config", "a.toml"], "--config is needed twice"),
        (["bisect", "p.py", "--config", "a.toml", "--config", "b.toml"], "a.toml cannot be read"),
        (["bisect", "p.py", "--fuzz", "0"], "--fuzz is 0"),
        (["bisect", "p.py", "--option-bad", "a"], "an option is NAME=VALUE"),
        (["bisect", "p.py", "--option-bad", "a=1", "--check", "true"], "--check cannot try options"),
        (["bisect", "p.py", "--timeout", "nan"], "--timeout is nan"),
        (["bisect", "none.py"], "no file none.py"),
        (["bisect", "p.py", "--sort", "speed"], "the columns are try, outcome, time"),
        (["bisect", "p.py", "--good", "HEAD~77"], "git knows no revision 'HEAD~77'"),
    ],
)
def test_what_cannot_be_asked(
    asked: list[str], words: str, history: GitHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    before = history.state()
    assert cli.main(asked) == 2
    assert words in capsys.readouterr().err
    assert history.state() == before
