"""The machine and the checkout are described; outside of a checkout there is no revision."""

import subprocess
from pathlib import Path

import pytest
import torch

from idbg.engine.program.machine import machine


def test_a_checkout_is_named_by_its_commit_and_what_was_changed_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    monkeypatch.chdir(tmp_path)
    found = machine.__wrapped__()
    assert (found.revision, found.modified) == ("", False)
    assert found.system and found.processors and torch.__version__.split("+")[0] in found.torch_build
    git("init", "-q")
    (tmp_path / "model.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    found = machine.__wrapped__()
    assert (found.revision, found.modified) == (git("rev-parse", "HEAD").strip(), False)
    (tmp_path / "model.py").write_text("x = 2\n")
    assert machine.__wrapped__().modified


def test_a_checkout_of_a_strangers_runs_no_command_of_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    with (tmp_path / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {tmp_path}/ran\n")
    monkeypatch.chdir(tmp_path)
    machine.__wrapped__()
    assert not (tmp_path / "ran").exists()


def test_variables_that_torch_reads_are_there_and_what_may_be_secret_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_URL", "redis://:hunter2@host")
    monkeypatch.setenv("CC_TOKEN", "hunter2")
    found = machine.__wrapped__().environment
    assert found["TORCHINDUCTOR_MAX_AUTOTUNE"] == "1" and found["OMP_NUM_THREADS"] == "3"
    assert "TORCHINDUCTOR_REDIS_URL" in found and "hunter2" not in repr(found)
    assert "CC_TOKEN" not in found and "HOME" not in found
